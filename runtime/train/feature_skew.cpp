#include "runtime/train/feature_skew.h"

#include <algorithm>

namespace rivulet::runtime {
namespace {

constexpr double window = 2000;  ///< rows of this device
constexpr double fewest = 200;
constexpr double farthest = 4;  ///< standard deviations: limits the effect of a broken sensor

}  // namespace

void FeatureSkew::agreed(const devices::Measured& own, const devices::Measured& all,
                         std::span<const devices::Column> columns) {
  distance_.resize(columns.size(), 0);
  seen_scaled_.resize(columns.size(), false);
  const double weight = own.rows > 0 ? own.rows / (rows_ + own.rows) : 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    // Measured in standard deviations only if the column was scaled.
    const double now = seen_scaled_[i] ? std::clamp(own.mean[i] - all.mean[i], -farthest, farthest) : 0;
    distance_[i] += weight * (now - distance_[i]);
    seen_scaled_[i] = columns[i].shown_deviation > 0;
  }
  rows_ = std::min(window, rows_ + own.rows);
}

double FeatureSkew::largest() const noexcept {
  double most = 0;
  for (const double distance : distance_) most = std::max(most, distance * distance);
  return rows_ < fewest ? 0 : most;
}

}  // namespace rivulet::runtime
