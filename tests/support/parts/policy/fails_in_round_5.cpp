// Ordinary rounds, until round 5 uses a collective that fails after encoding.
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  plan.next.rows.assign(in.table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  if (in.round == 4) plan.next.way.collective = "fails_after_encode";
  plan.why = "round 5 fails";
}

}  // namespace
extern const ControllerEntry policy_fails_in_round_5;
const ControllerEntry policy_fails_in_round_5{Role::batch, "fails_in_round_5", "test only", &propose};
}  // namespace rivulet::sync::policy
