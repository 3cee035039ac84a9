// Two steps alone, then one that adds up the movement: what SelSync-like policies will do.
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double> memory, RoundPlan& plan) {
  plan.next.rows.assign(in.table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  if (plan.now.mode == Mode::idle) return;
  const bool third = memory[0] == 2;
  plan.now.mode = third ? Mode::delta : Mode::local;
  memory[0] = third ? 0 : memory[0] + 1;
  plan.why = third ? "third round" : "alone";
}

}  // namespace
extern const ControllerEntry policy_local_local_parameters;
const ControllerEntry policy_local_local_parameters{
    Role::batch, "local_local_parameters", "test only", &propose, {}, {}, 1};
}  // namespace rivulet::sync::policy
