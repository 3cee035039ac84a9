// Gradients or up to four local steps, drawn for each round; steps may overlap the synchronization, and a
// device whose gradients change may request an early one.
#include "sync/policy/controller.h"
#include "tests/support/parts/policy/drawn.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  Rng rng = testing::drawn_for(in, "when");
  plan.next.local.reset();
  if (rng.below(2) != 0) return;
  LocalSchedule& local = plan.next.local.emplace();
  local.steps = 1 + static_cast<std::uint32_t>(rng.below(4));
  local.overlap = local.steps > 1 && rng.below(3) == 0;
  if (rng.below(2) == 0) local.early = EarlySync{0.01, 0.2};
}

}  // namespace
extern const ControllerEntry policy_drawn_when;
const ControllerEntry policy_drawn_when{Role::when, "drawn_when", "test only", &propose};
}  // namespace rivulet::sync::policy
