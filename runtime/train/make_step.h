#pragma once
#include "core/gradient_view.h"
#include "devices/optimizer.h"
#include "runtime/state/agreed_state.h"
#include "sync/message/facts.h"
#include "sync/message/plan.h"

namespace rivulet::runtime {

/// What became of an agreed sum.
struct StepMade {
  bool finite = false;
  double gradient_norm = 0;  ///< before clipping; of mode gradients
  double learning_rate = 0;
  bool operator==(const StepMade&) const = default;
};

/// What a step depends on besides the state.
struct StepParts {
  const devices::OptimizerConfig& optimizer;
  devices::Device& device;
  const sync::FactsTable& table;
  const sync::policy::Decision& decision;
  const std::vector<sync::policy::ControllerMemory>& memory;  ///< of the controllers, behind the round
  std::uint64_t view = 0;                                     ///< number of it
};

/// An aggregating round becomes part of the state: the agreed sum [P + B], which the host can read, if all of
/// it is finite, and what was announced with it in any case. A pure function of the state and the parts: the
/// same on all devices and in a replay. Errors: the device's; the state may be half changed then.
Result<StepMade> make_step(AgreedState& state, const StepParts& parts, const GradientView& sum);

}  // namespace rivulet::runtime
