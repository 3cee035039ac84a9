#pragma once

namespace rivulet::devices {

/// Mean and variance of some rows, with those of others that are the part `weight` of all.
inline void merge_spread(double& mean, double& variance, double more_mean, double more_variance,
                         double weight) {
  const double distance = more_mean - mean;
  mean += weight * distance;
  variance = (1 - weight) * variance + weight * (more_variance + (1 - weight) * distance * distance);
}

}  // namespace rivulet::devices
