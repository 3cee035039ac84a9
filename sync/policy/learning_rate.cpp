#include "sync/policy/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sync/policy/coherence.h"

namespace rivulet::sync::policy {
namespace {

constexpr double weight_of_a_step = 0.1;  ///< weight of the newest step in the mean rows per step
constexpr double least_factor = 1e-6;     ///< schedules never reduce the rate to 0
constexpr double most_factor = 1e6;

double rows_of(const FactsTable& table) {
  double rows = 0;
  for (const Facts& f : table.facts) rows += static_cast<double>(f.rows);
  return rows;
}

/// Updates the mean rows per step. Skips deferred rounds: they are incomplete, and the next round announces
/// their rows again.
void learn_rows(const Inputs& inputs, Mode mode, std::span<double> memory) {
  if (mode == Mode::defer || mode == Mode::idle || mode == Mode::skip) return;
  const double rows = rows_of(inputs.table);
  if (rows == 0) return;
  const double steps = inputs.entered.steps();
  const double now = rows / steps;
  const double before = memory[step_rows_at];
  const double weight = before == 0 ? 1 : std::min(1.0, weight_of_a_step * steps);
  memory[step_rows_at] = before + weight * (now - before);
}

/// The usual number of devices, so that a device that comes or goes does not change the rate of the others.
std::size_t devices_of(const Inputs& inputs) {
  return inputs.config.devices > 0 ? inputs.config.devices : inputs.table.size();
}

/// Scale by the configured rule for a step of all devices together; 1 before the first step.
double wanted_scale(const Inputs& inputs, double step_rows) {
  const std::string& rule = setting(inputs.config, scaling_rule_key.name).text;
  if (rule == "none" || step_rows == 0) return 1;
  const double base = setting(inputs.config, scaling_base_key.name).number;
  const double times = step_rows / (base * static_cast<double>(devices_of(inputs)));
  const double wanted = rule == "linear" ? times : std::sqrt(times);
  return std::min(wanted, setting(inputs.config, scaling_cap_key.name).number);
}

/// Follows a larger scale gradually, a smaller one immediately.
void follow(const Inputs& inputs, std::span<double> memory) {
  const double wanted = wanted_scale(inputs, memory[step_rows_at]);
  double& scale = memory[scale_at];
  if (scale == 0 || wanted <= scale) {
    scale = wanted;
    return;
  }
  const double steps = inputs.entered.steps();
  scale += std::min(1.0, steps / setting(inputs.config, scaling_warmup_key.name).number) * (wanted - scale);
}

/// A step of the group is scaled by its own rows, if they are fewer than usual. Local steps are scaled by the
/// devices.
double scale_of_step(const Inputs& inputs, Mode mode, std::span<const double> memory) {
  const double usual = memory[scale_at] > 0 ? memory[scale_at] : 1.0;
  const bool steps = mode == Mode::gradients && !inputs.entered.local;
  return steps ? std::min(usual, wanted_scale(inputs, rows_of(inputs.table))) : usual;
}

void count_falls(double schedule, std::span<double> memory) {
  constexpr double fifth = 0.8;
  double& counted = memory[schedule_at];
  if (counted > 0 && schedule <= fifth * counted) memory[falls_at] += 1;
  if (schedule > counted || schedule <= fifth * counted) counted = schedule;
}

}  // namespace

double rows_trained(const FactsTable& table) {
  double rows = 0;
  for (const Facts& f : table.facts) rows = std::max(rows, static_cast<double>(f.agreed_rows));
  return rows;
}

LocalStepRate::LocalStepRate(const PolicyConfig& config, const PolicyState& state)
    : factor_(state.last.now.learning_rate_factor) {
  const std::string name = std::string(name_of(Role::learning_rate)) + "/" + config.learning_rate_policy;
  const auto own = std::ranges::find(state.memory, name, &ControllerMemory::name);
  if (own == state.memory.end() || own->values.size() != learning_rate_memory) return;
  const std::string& rule = setting(config, scaling_rule_key.name).text;
  scales_ = rule != "none";
  by_root_ = rule == "sqrt";
  base_rows_ = setting(config, scaling_base_key.name).number;
  // Before the first decision of a view the factor is 1, regardless of earlier scaling.
  if (state.round > 0 && own->values[scale_at] > 0) scale_ = own->values[scale_at];
}

double LocalStepRate::of(std::size_t rows) const {
  if (!scales_) return factor_;
  const double times = static_cast<double>(rows) / base_rows_;
  return factor_ * std::min(1.0, (by_root_ ? std::sqrt(times) : times) / scale_);
}

void set_learning_rate(const Inputs& inputs, std::span<double> memory, double schedule, RoundPlan& plan) {
  learn_rows(inputs, plan.now.mode, memory);
  follow(inputs, memory);
  count_falls(schedule, memory);
  keep_finite(memory);
  const double warmup = setting(inputs.config, warmup_rows_key.name).number;
  double factor = schedule * scale_of_step(inputs, plan.now.mode, memory);
  if (warmup > 0) factor *= std::min(1.0, (rows_trained(inputs.table) + 1) / (warmup + 1));
  memory[factor_at] = std::clamp(finite(factor), least_factor, most_factor);
  plan.now.learning_rate_factor = memory[factor_at];
}

}  // namespace rivulet::sync::policy
