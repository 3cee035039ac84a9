#include "runtime/train/explosion_watch.h"

#include <algorithm>
#include <cmath>

namespace rivulet::runtime {
namespace {

/// Limit, as a multiple of the norm of the parameters or of the largest delta so far. With momentum, a delta
/// of 32 steps is 320 times as large as the first delta of one step.
constexpr double too_far = 1000;
/// Limit, as a multiple of the loss before the steps or of an untrained model.
constexpr double too_high = 4;
constexpr double too_high_of_numbers = 16;  ///< numeric targets have long tails
constexpr double few_rows = 4;              ///< one row in this many may be an outlier
constexpr double kept = 0.99;               ///< decay of a maximum per synchronization
constexpr double usual_rows = 4096;
constexpr std::uint32_t syncs_before = 20;  ///< minimum, for numeric targets
constexpr std::uint32_t refusals_of_a_kind = 8;
constexpr double more_patience = 4;

}  // namespace

ExplosionWatch::ExplosionWatch(std::size_t classes)
    : untrained_(classes > 1 ? std::log(static_cast<double>(classes)) : 0) {}

void ExplosionWatch::agreed(double loss_sum, std::uint64_t rows) {
  if (rows == 0 || !std::isfinite(loss_sum)) return;
  const double loss = loss_sum / static_cast<double>(rows);
  const double weight = std::min(1.0, static_cast<double>(rows) / usual_rows);
  usual_loss_ = syncs_ == 0 ? loss : usual_loss_ + weight * (loss - usual_loss_);
  highest_loss_ = std::max(loss, kept * highest_loss_);
  largest_ *= kept;
  syncs_ = std::min(syncs_ + 1, syncs_before);
}

/// Repeated rejections may mean that the rows really are so large: raises the limit.
double ExplosionWatch::patience(std::uint32_t refused) const {
  return std::pow(more_patience, refused / refusals_of_a_kind);
}

/// Returns the limit; 0 if there is nothing to compare with.
double ExplosionWatch::longest() const {
  return too_far * std::max(parameters_, largest_);
}

bool ExplosionWatch::refuses_step(double distance) {
  const double most = longest() * patience(refused_steps_);
  const bool refuses = most > 0 && distance > most;
  refused_steps_ = refuses ? refused_steps_ + 1 : 0;
  return refuses;
}

bool ExplosionWatch::loss_exploded(const LocalSteps& steps) const {
  const bool numbers = untrained_ == 0;
  if (numbers && syncs_ < syncs_before) return false;
  const double before =
      std::max({untrained_, usual_loss_, steps.early_loss(), numbers ? highest_loss_ : 0.0});
  const double doubt = 1 + few_rows / std::max(1.0, static_cast<double>(steps.late_rows()));
  return steps.late_loss() >
         before * doubt * (numbers ? too_high_of_numbers : too_high) * patience(rejected_deltas_);
}

bool ExplosionWatch::rejects_delta(double norm, const LocalSteps& steps) {
  const double most = longest() * patience(rejected_deltas_);
  const bool refuses = (most > 0 && norm > most) || loss_exploded(steps);
  rejected_deltas_ = refuses ? rejected_deltas_ + 1 : 0;
  if (!refuses) largest_ = std::max(largest_, norm);
  return refuses;
}

}  // namespace rivulet::runtime
