#pragma once
#include <array>
#include <cstddef>
#include <span>

#include "sync/policy/controller.h"

/// Shared part of all controllers of the learning rate. The factor of a step is
///
///   schedule(rows the group has trained) * warm-up(the same) * scale(rows of a step)
///
/// so it depends on rows, not on the number of steps, and is the same on every device. The rows of a step are
/// averaged over the last steps. A single smaller step is scaled by its own rows (LocalStepRate, and
/// set_learning_rate() for steps of the group). Otherwise the noise of a few rows would weigh as much as the
/// mean of many.
namespace rivulet::sync::policy {

/// Goyal et al. (2017) scale by the rows, Krizhevsky (2014) by their square root: smaller steps are noisier.
constexpr Key scaling_rule_key{
    .name = "train.lr_scaling.rule",
    .type = KeyType::text,
    .text = "\"sqrt\"",
    .help = "scaling of lr with the rows of a step: not at all, in proportion, or with the square root",
    .choices = "none | linear | sqrt"};
constexpr Key scaling_base_key{.name = "train.lr_scaling.base_rows",
                               .type = KeyType::integer,
                               .text = "64",
                               .help = "rows per step and device at which lr is not scaled",
                               .least = 1,
                               .most = 1e6};
constexpr Key scaling_cap_key{.name = "train.lr_scaling.cap",
                              .text = "4.0",
                              .help = "maximum scale of lr; large steps gain less than the rule predicts",
                              .least = 1,
                              .most = 1e6};
constexpr Key scaling_warmup_key{
    .name = "train.lr_scaling.warmup_rounds",
    .type = KeyType::integer,
    .text = "20",
    .help =
        "steps over which lr rises after the rows per step have increased; a decrease lowers lr immediately",
    .least = 1,
    .most = 1e6};
constexpr Key warmup_rows_key{
    .name = "train.lr_schedule.warmup_rows",
    .type = KeyType::integer,
    .text = "0",
    .help = "length of the warm-up of lr from 0, in rows of the whole group; 0 = no warm-up",
    .least = 0,
    .most = 1e15};
/// The shared keys, followed by those of one schedule.
template <std::size_t own>
constexpr std::array<Key, 5 + own> learning_rate_keys(const std::array<Key, own>& keys) {
  std::array<Key, 5 + own> all{scaling_rule_key, scaling_base_key, scaling_cap_key, scaling_warmup_key,
                               warmup_rows_key};
  for (std::size_t i = 0; i < own; ++i) all[5 + i] = keys[i];
  return all;
}

/// Layout of a learning-rate controller's memory.
enum LearningRatePlace : std::size_t {
  step_rows_at,  ///< mean rows of the last steps, all devices together
  scale_at,      ///< current scale; 0: no step yet
  factor_at,     ///< current factor of train.optimizer.lr
  schedule_at,   ///< schedule at the last counted fall
  falls_at,      ///< number of counted falls
  learning_rate_memory,
};
inline constexpr std::array learning_rate_figures{
    Figure{"step_rows", "rows per step, summed over all devices", step_rows_at},
    Figure{"learning_rate_factor", "factor of train.optimizer.lr, from schedule, warm-up and rows per step",
           factor_at},
};

/// A schedule that falls by a fifth changes gradients abruptly, so slow loops wait: ControllerEntry::slow.
inline constexpr SlowLoop learning_rate_falls{.changes_at = falls_at};

/// Rows that the group trained before this round.
double rows_trained(const FactsTable& table);
/// Factors of train.optimizer.lr for local steps until the next synchronization. A pure function of the last
/// agreed state and the rows of a step, so a replay gives the same factors.
class LocalStepRate {
 public:
  /// Factor 1 for steps of any size.
  LocalStepRate() = default;
  /// `state`: the state after the last synchronization.
  LocalStepRate(const PolicyConfig& config, const PolicyState& state);
  /// Factor of a step of this many rows: the group's, or a smaller one if the rule requires it.
  [[nodiscard]] double of(std::size_t rows) const;

 private:
  bool scales_ = false;
  bool by_root_ = false;
  double base_rows_ = 1;
  double scale_ = 1;   ///< scale contained in factor_
  double factor_ = 1;  ///< factor of the group
};

/// Sets the learning-rate factor in the plan. `schedule`: the part of it given by the schedule.
void set_learning_rate(const Inputs& inputs, std::span<double> memory, double schedule, RoundPlan& plan);

}  // namespace rivulet::sync::policy
