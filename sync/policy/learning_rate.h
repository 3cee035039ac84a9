#pragma once
#include <array>
#include <cstddef>
#include <span>

#include "sync/policy/controller.h"

/// What all controllers of the learning rate share: nobody else changes it. The factor of a step is
///
///   schedule(rows the group has trained) * warm-up(the same) * scale(rows of a step)
///
/// so that it depends on rows, not on how many steps they were made of, and is the same on every device. Rows
/// of a step are those of the last ones on average; a single step of fewer is scaled by its own (OwnStepRate,
/// and set_learning_rate() where the group steps), or the noise of a few rows would go as far as the mean of
/// many.
namespace rivulet::sync::policy {

/// Goyal et al. (2017) scale by the rows, Krizhevsky (2014) by their root: a step of fewer rows is noisier.
constexpr Key scaling_rule_key{
    .name = "train.lr_scaling.rule",
    .type = KeyType::text,
    .text = "\"sqrt\"",
    .help = "how lr follows the rows of a step: not at all, in proportion, or with their root",
    .choices = "none | linear | sqrt"};
constexpr Key scaling_base_key{.name = "train.lr_scaling.base_rows",
                               .type = KeyType::integer,
                               .text = "64",
                               .help = "rows of a step and device that lr is meant for",
                               .least = 1,
                               .most = 1e6};
constexpr Key scaling_cap_key{.name = "train.lr_scaling.cap",
                              .text = "4.0",
                              .help = "times lr, at most: large steps gain less than the rule says",
                              .least = 1,
                              .most = 1e6};
constexpr Key scaling_warmup_key{
    .name = "train.lr_scaling.warmup_rounds",
    .type = KeyType::integer,
    .text = "20",
    .help = "steps in which lr follows steps that get larger; smaller ones at once",
    .least = 1,
    .most = 1e6};
constexpr Key warmup_rows_key{.name = "train.lr_schedule.warmup_rows",
                              .type = KeyType::integer,
                              .text = "0",
                              .help = "in which lr rises from nothing, of the whole group; 0 = no warm-up",
                              .least = 0,
                              .most = 1e15};
/// The shared keys, and behind them those of one schedule.
template <std::size_t own>
constexpr std::array<Key, 5 + own> learning_rate_keys(const std::array<Key, own>& keys) {
  std::array<Key, 5 + own> all{scaling_rule_key, scaling_base_key, scaling_cap_key, scaling_warmup_key,
                               warmup_rows_key};
  for (std::size_t i = 0; i < own; ++i) all[5 + i] = keys[i];
  return all;
}

/// What a controller of the learning rate remembers.
enum LearningRatePlace : std::size_t {
  step_rows_at,  ///< of a step, all devices together; mean of the last ones
  scale_at,      ///< in use; 0: no step has been seen
  factor_at,     ///< of train.optimizer.lr, as it stands
  schedule_at,   ///< when it was said last that it has fallen
  falls_at,      ///< how often that was
  learning_rate_memory,
};
inline constexpr std::array learning_rate_figures{
    Figure{"step_rows", "rows of a step, all devices together", step_rows_at},
    Figure{"learning_rate_factor", "of train.optimizer.lr, from schedule, warm-up and rows of a step",
           factor_at},
};

/// Where a schedule falls by a fifth gradients jump, and slow loops wait: ControllerEntry::slow.
inline constexpr SlowLoop learning_rate_falls{.changes_at = falls_at};

/// Rows that the group had trained before this round.
double rows_trained(const FactsTable& table);
/// Factors of train.optimizer.lr for the steps that devices make on their own, until the group agrees next. A
/// pure function of what they agreed on last, and of the rows of a step: a replay makes the same.
class OwnStepRate {
 public:
  /// 1, for steps of any size.
  OwnStepRate() = default;
  /// `state`: behind the last agreement.
  OwnStepRate(const PolicyConfig& config, const PolicyState& state);
  /// Of a step of N rows: the group's, and less if the rule asks for less with so few rows.
  [[nodiscard]] double of(std::size_t rows) const;

 private:
  bool scales_ = false;
  bool by_root_ = false;
  double base_rows_ = 1;
  double scale_ = 1;   ///< in factor_
  double factor_ = 1;  ///< of the group
};

/// Decides the factor, where the schedule says `schedule`.
void set_learning_rate(const Inputs& inputs, std::span<double> memory, double schedule, RoundPlan& plan);

}  // namespace rivulet::sync::policy
