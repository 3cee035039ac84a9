#pragma once
#include <span>
#include <vector>

#include "devices/columns.h"

namespace rivulet::runtime {

/// Distance of this device's feature values from those of all devices, computed from its own contribution and
/// the sum of each synchronization. A shift common to all devices does not count. Owner: the train thread.
/// Cost: one pass over the columns per synchronization.
class FeatureSkew {
 public:
  /// Call after a synchronization: `own` was part of the sum `all`. `columns`: normalization that the model
  /// uses from now on; features come first.
  void agreed(const devices::Measured& own, const devices::Measured& all,
              std::span<const devices::Column> columns);
  /// Returns the largest squared distance between a feature's mean over the last 2000 rows and the mean of
  /// all devices, in variances; 0 before 200 rows.
  [[nodiscard]] double largest() const noexcept;

 private:
  std::vector<double> distance_;  ///< mean of each feature minus that of all devices, in standard deviations
  std::vector<bool> seen_scaled_;
  double rows_ = 0;  ///< number of rows in the distances
};

}  // namespace rivulet::runtime
