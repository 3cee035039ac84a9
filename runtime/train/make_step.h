#pragma once
#include "core/gradient_view.h"
#include "devices/optimizer.h"
#include "runtime/state/agreed_state.h"
#include "sync/message/facts.h"
#include "sync/message/plan.h"

namespace rivulet::runtime {

/// The result of applying an agreed sum.
struct StepMade {
  bool finite = false;
  double gradient_norm = 0;  ///< norm before clipping; only in mode gradients
  double learning_rate = 0;
  bool operator==(const StepMade&) const = default;
};

/// Inputs of a step apart from the state.
struct StepParts {
  const devices::OptimizerConfig& optimizer;
  devices::Device& device;
  const sync::FactsTable& table;
  const sync::policy::Decision& decision;
  const std::vector<sync::policy::ControllerMemory>& memory;  ///< memory of the controllers after the round
  std::uint64_t view = 0;                                     ///< number of the view
};

/// Applies an aggregating round to the state: the agreed sum [P + B] in host memory, if all of it is finite,
/// and in any case the announced rows. A pure function of its arguments: the result is the same on all
/// devices and in a replay. Errors: the device's; the state may then be partly changed.
Result<StepMade> make_step(AgreedState& state, const StepParts& parts, const GradientView& sum);

}  // namespace rivulet::runtime
