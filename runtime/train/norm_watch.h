#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "sync/controllers/batch_rows.h"
#include "sync/message/plan.h"

namespace rivulet::runtime {

/// Measures how much this device's gradients change from one local step to the next, for requests of early
/// synchronization (SelSync, Tyagi and Swany, CLUSTER 2023). Owner: the train thread.
class NormWatch {
 public:
  /// Adds a step of `rows` rows. `weight`: weight of the newest value in the mean, 0 < weight <= 1. The norm
  /// of a gradient averaged over few rows contains more noise: a different batch size restarts the mean and
  /// does not count as a change.
  void add(double norm2, double weight, std::size_t rows) {
    if (!std::isfinite(norm2)) return;
    if (sync::policy::is_another_batch(static_cast<double>(rows), rows_) && mean_ > 0) {
      mean_ = norm2;
      return;
    }
    const double before = mean_;
    mean_ = before > 0 ? before + weight * (norm2 - before) : norm2;
    // Without an earlier mean, everything counts as changed.
    const double change = before > 0 ? std::abs(mean_ - before) / before : unknown;
    change_ = std::max(change_, change);
  }
  /// Returns the largest relative change of the smoothed squared norm since the last synchronization.
  [[nodiscard]] double change() const noexcept { return change_; }
  [[nodiscard]] bool requests_sync(const sync::policy::Schedule& schedule) const noexcept {
    return schedule.local && schedule.local->early && change_ >= schedule.local->early->change;
  }
  void agreed() noexcept { change_ = 0; }

 private:
  static constexpr double unknown = 1e9;
  double mean_ = 0;
  double rows_ = 0;  ///< usual batch size
  double change_ = 0;
};

}  // namespace rivulet::runtime
