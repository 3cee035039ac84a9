#pragma once

namespace rivulet::devices {

/// Merges mean and variance with those of additional rows, which are the fraction `weight` of all rows.
inline void merge_spread(double& mean, double& variance, double more_mean, double more_variance,
                         double weight) {
  const double distance = more_mean - mean;
  mean += weight * distance;
  variance = (1 - weight) * variance + weight * (more_variance + (1 - weight) * distance * distance);
}

}  // namespace rivulet::devices
