#include "sync/policy/divergence.h"

#include <algorithm>
#include <cmath>

namespace rivulet::sync::policy {
namespace {

enum Place : std::size_t {
  tried,
  falls,
  good_lineage,
  good_step,
  rows_at_change,
  trial_lineage,
  trial_step,
  trial_rows,
};

constexpr double halvings = 2;                       ///< halvings of the rate per rollback
constexpr double rows_until_rate_doubles = 100'000;  ///< rows of the whole group
constexpr double falls_most = 8;                     ///< maximum sum of halvings

/// Rows per device after which a trial of a checkpoint ends without a result.
constexpr double rows_of_a_trial = 10'000;
/// A group without a good checkpoint starts over only if it has trained fewer rows.
constexpr double young_rows = 100'000;

struct Votes {
  std::size_t all = 0;  ///< devices with an opinion
  std::size_t diverged = 0;
  std::size_t good = 0;
};

Votes votes_of(const FactsTable& table) {
  // A device without rows in this round may have reported on its last rows.
  constexpr std::uint32_t judged = flag_nonfinite | flag_diverged | flag_sound;
  Votes votes;
  for (const Facts& facts : table.facts) {
    if (facts.rows == 0 && (facts.flags & judged) == 0) continue;
    ++votes.all;
    if ((facts.flags & flag_diverged) != 0)
      ++votes.diverged;
    else if ((facts.flags & flag_good) != 0)
      ++votes.good;
  }
  return votes;
}

const std::vector<double>* memory_in(std::span<const ControllerMemory> agreed) {
  const auto own = std::ranges::find(agreed, Divergence::name, &ControllerMemory::name);
  return own != agreed.end() && Divergence::fits(own->values) ? &own->values : nullptr;
}

Stamp stamp_in(std::span<const ControllerMemory> agreed, Place lineage, Place step) {
  const auto* own = memory_in(agreed);
  if (own == nullptr || (*own)[step] <= 0) return {};
  return {static_cast<std::uint64_t>((*own)[lineage]), static_cast<std::uint64_t>((*own)[step])};
}

}  // namespace

bool Divergence::fits(std::span<const double> memory) {
  if (memory.size() != numbers) return false;
  for (std::size_t place = 0; place < numbers; ++place) {
    const double least = place == rows_at_change ? -1 : 0;
    const double most = place == tried ? tries_most + 1 : place == falls ? falls_most : 0x1p53;
    const double value = memory[place];
    if (!(value >= least && value <= most) || value != std::floor(value)) return false;
  }
  return true;
}

double Divergence::factor_of(std::span<const double> memory) {
  double factor = 1;
  if (memory.empty()) return factor;
  for (double i = 0; i < std::min(falls_most, memory[falls]); ++i) factor /= 2;
  return factor;
}

void Divergence::decide(const FactsTable& table, std::uint64_t view, RoundPlan& plan) {
  if (memory_.empty() || plan.now.stop || !plan.now.leaving.empty()) return;
  if (any_flag(table, flag_dry_run)) return;  // nothing is trained or saved
  const Votes votes = votes_of(table);
  const auto rows = static_cast<double>(table.facts.front().agreed_rows);
  const bool can = memory_[good_step] > 0 || rows <= young_rows;
  if (2 * votes.diverged > votes.all && can) return roll_back(plan);
  const bool steps = plan.now.mode == Mode::gradients || plan.now.mode == Mode::delta;
  if (!steps) return;
  recover(table);
  if (memory_[trial_step] > 0 && 2 * votes.good > votes.all) promote();
  const double longest = rows_of_a_trial * static_cast<double>(table.size());
  const bool open = memory_[trial_step] == 0 || rows >= memory_[trial_rows] + longest;
  if (!plan.now.checkpoint || !open || votes.diverged > 0) return;
  memory_[trial_lineage] = static_cast<double>(view);
  memory_[trial_step] = static_cast<double>(table.facts.front().step + 1);
  memory_[trial_rows] = rows;
}

void Divergence::promote() {
  memory_[tried] = 0;
  memory_[good_lineage] = memory_[trial_lineage];
  memory_[good_step] = memory_[trial_step];
  memory_[trial_step] = 0;
}

void Divergence::roll_back(RoundPlan& plan) {
  const bool again = memory_[tried] < tries_most;
  plan.now.mode = Mode::defer;
  plan.now.checkpoint = false;
  plan.now.retreat = again ? Retreat::roll_back : Retreat::give_up;
  plan.now.back_lineage = static_cast<std::uint64_t>(memory_[good_lineage]);
  plan.now.back_step = static_cast<std::uint64_t>(memory_[good_step]);
  plan.why += again ? "; the model has diverged: rolling back to the last good checkpoint"
                    : "; the model has diverged repeatedly";
  ++memory_[tried];
  memory_[falls] = std::min(falls_most, memory_[falls] + halvings);
  memory_[rows_at_change] = -1;
  memory_[trial_step] = 0;
}

/// Raises the learning rate again step by step: two absurd rows must not slow down learning forever.
void Divergence::recover(const FactsTable& table) {
  if (memory_[falls] == 0) return;
  const auto rows = static_cast<double>(table.facts.front().agreed_rows);
  if (memory_[rows_at_change] < 0) memory_[rows_at_change] = rows;
  if (memory_[tried] > 0 || rows < memory_[rows_at_change] + rows_until_rate_doubles) return;
  --memory_[falls];
  memory_[rows_at_change] = rows;
}

Stamp Divergence::good(std::span<const ControllerMemory> agreed) {
  return stamp_in(agreed, good_lineage, good_step);
}

Stamp Divergence::on_trial(std::span<const ControllerMemory> agreed) {
  return stamp_in(agreed, trial_lineage, trial_step);
}

double Divergence::learning_rate_factor(std::span<const ControllerMemory> agreed) {
  const auto* own = memory_in(agreed);
  return own != nullptr ? factor_of(*own) : 1;
}

std::uint32_t Divergence::tries(std::span<const ControllerMemory> agreed) {
  const auto* own = memory_in(agreed);
  return own != nullptr ? static_cast<std::uint32_t>((*own)[tried]) : 0;
}

}  // namespace rivulet::sync::policy
