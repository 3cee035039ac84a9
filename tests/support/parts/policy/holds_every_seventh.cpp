// Even rows, but every seventh round defers them: unpredictable for speculation.
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  plan.next.rows.assign(in.table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  plan.why = "even rows";
  if (plan.now.mode != Mode::gradients || in.round % 7 != 6) return;
  plan.now.mode = Mode::defer;
  plan.why = "the seventh";
}

}  // namespace
extern const ControllerEntry policy_holds_every_seventh;
const ControllerEntry policy_holds_every_seventh{Role::batch, "holds_every_seventh", "test only", &propose};
}  // namespace rivulet::sync::policy
