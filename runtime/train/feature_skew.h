#pragma once
#include <span>
#include <vector>

#include "devices/columns.h"

namespace rivulet::runtime {

/// Distance of this device's feature values from those of all devices, computed from its own contribution and
/// the sum of each synchronization. A shift common to all devices does not count. Owner: the train thread.
/// Cost: a pass over the columns per synchronization.
class FeatureSkew {
 public:
  /// `own` was part of the sum `all`. `columns`: as the model sees them from now on; the first is a feature.
  void agreed(const devices::Measured& own, const devices::Measured& all,
              std::span<const devices::Column> columns);
  /// The largest squared distance of a feature's mean over the last 2000 rows from the mean of all devices,
  /// in variances. 0 before 200 rows.
  [[nodiscard]] double largest() const noexcept;

 private:
  std::vector<double> distance_;  ///< distance of each feature, in deviations
  std::vector<bool> seen_scaled_;
  double rows_ = 0;  ///< number of rows in the distances
};

}  // namespace rivulet::runtime
