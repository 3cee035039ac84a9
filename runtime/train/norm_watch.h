#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>

#include "sync/controllers/batch_rows.h"
#include "sync/message/plan.h"

namespace rivulet::runtime {

/// How much this device's gradients have changed from one own step to the next: what makes it call the others
/// (SelSync, Tyagi and Swany, CLUSTER 2023). Owner: the train thread.
class NormWatch {
 public:
  /// Of a step of N rows. `weight`: of the newest in the mean, 0 < weight <= 1. The norm of a mean of
  /// few rows has more noise in it: a batch of another size begins the mean anew, and is not a change.
  void add(double norm2, double weight, std::size_t rows) {
    if (!std::isfinite(norm2)) return;
    if (sync::policy::is_another_batch(static_cast<double>(rows), rows_) && mean_ > 0) {
      mean_ = norm2;
      return;
    }
    const double before = mean_;
    mean_ = before > 0 ? before + weight * (norm2 - before) : norm2;
    // Nothing to compare with: everything is new.
    const double change = before > 0 ? std::abs(mean_ - before) / before : unknown;
    change_ = std::max(change_, change);
  }
  /// The largest relative change of the smoothed squared norm since the group agreed last.
  [[nodiscard]] double change() const noexcept { return change_; }
  [[nodiscard]] bool calls(const sync::policy::Schedule& schedule) const noexcept {
    return schedule.local && schedule.local->early && change_ >= schedule.local->early->change;
  }
  void agreed() noexcept { change_ = 0; }

 private:
  static constexpr double unknown = 1e9;
  double mean_ = 0;
  double rows_ = 0;  ///< usual ones
  double change_ = 0;
};

}  // namespace rivulet::runtime
