#pragma once
#include <span>
#include <vector>

#include "devices/columns.h"

namespace rivulet::runtime {

/// How far the values of this device's features are from those of all devices, by what each brings to an
/// agreement and what comes of it. What moves on all devices alike is not a distance. Owner: the train
/// thread. Cost: a pass over the columns for each agreement.
class FeatureSkew {
 public:
  /// `own` was part of the sum `all`. `columns`: as the model sees them from here on; the first is a feature.
  void agreed(const devices::Measured& own, const devices::Measured& all,
              std::span<const devices::Column> columns);
  /// Of the feature whose mean over the last 2000 rows is furthest from that of all: the square of the
  /// distance, in variances. 0 before 200 rows.
  [[nodiscard]] double largest() const noexcept;

 private:
  std::vector<double> distance_;  ///< of each feature, in deviations
  std::vector<bool> seen_scaled_;
  double rows_ = 0;  ///< behind them
};

}  // namespace rivulet::runtime
