// Synchronization by a collective of two dependent phases.
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  plan.next.rows.assign(in.table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  plan.next.way.collective = "two_phases";
  plan.why = "two phases";
}

}  // namespace
extern const ControllerEntry policy_two_phases;
const ControllerEntry policy_two_phases{Role::batch, "two_phases", "test only", &propose};
}  // namespace rivulet::sync::policy
