#include "runtime/train/make_step.h"

#include <algorithm>

#include "devices/average.h"
#include "devices/class_balance.h"
#include "devices/columns.h"
#include "runtime/state/round_update.h"

namespace rivulet::runtime {
namespace {

using sync::policy::Mode;

void take_from(const GradientView& numbers, const GradientView& less) {
  const auto each = [](auto into, auto from) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] -= from[i];
  };
  if (numbers.scalar == Scalar::f32)
    each(numbers.as<float>(), less.as<float>());
  else
    each(numbers.as<double>(), less.as<double>());
}

/// Moves the reference by the average delta (reference - copy, the direction of a gradient). Buffers become
/// the average of the devices' buffers. Clears the group's optimizer arrays: they are outdated, and each
/// device has current ones.
void apply_delta(devices::ModelState& model, const GradientView& sum) {
  const auto& layout = model.layout();
  take_from(model.parameters(), sum.slice(0, layout.parameters));
  std::ranges::copy(sum.slice(layout.parameters, layout.buffers).host_bytes(),
                    model.buffers().host_bytes().begin());
  for (std::size_t i = 0; i < layout.optimizer_arrays.size(); ++i)
    std::ranges::fill(model.optimizer_array(i).host_bytes(), std::byte{0});
}

}  // namespace

Result<StepMade> make_step(AgreedState& state, const StepParts& parts, const GradientView& sum) {
  StepMade made{.finite = all_finite(sum)};
  if (made.finite && parts.decision.mode == Mode::gradients) {
    const auto applied =
        devices::apply_gradient(parts.optimizer, state.model, sum, parts.decision.learning_rate_factor,
                                state.stamp.step + 1, parts.device);
    if (!applied) return applied.error();
    made.gradient_norm = applied.value().gradient_norm;
    made.learning_rate = applied.value().learning_rate;
  } else if (made.finite) {
    apply_delta(state.model, sum);
  }
  const std::uint64_t rows_before = state.rows;
  fold_round(state, parts.table, parts.view, made.finite);
  if (made.finite) {
    const auto rows = static_cast<double>(state.rows - rows_before);
    if (sync::any_flag(parts.table, sync::flag_changed)) devices::hurry_after_change(state.model);
    if (auto done = devices::follow_columns(state.model, rows, parts.device); !done) return done.error();
    if (auto done = devices::follow_classes(state.model, rows, parts.device); !done) return done.error();
    if (auto done = devices::follow_average(state.model, rows, parts.device); !done) return done.error();
  }
  state.controllers = parts.memory;
  return made;
}

}  // namespace rivulet::runtime
