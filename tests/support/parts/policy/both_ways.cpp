// Three synchronizations of gradients, three of deltas after two local steps each, and so on.
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  plan.next.local.reset();
  if ((in.table.facts[0].step + 1) / 3 % 2 == 1) plan.next.local = LocalSchedule{.steps = 2};
}

}  // namespace
extern const ControllerEntry policy_both_ways;
const ControllerEntry policy_both_ways{Role::when, "both_ways", "test only", &propose};
}  // namespace rivulet::sync::policy
