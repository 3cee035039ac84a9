// Counts planned rounds with rows in its memory, and reports the count; every fifth is deferred.
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double> memory, RoundPlan& plan) {
  plan.next.rows.assign(in.table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  if (plan.now.mode != Mode::gradients) return;
  memory[0] += 1;
  plan.why = "round " + std::to_string(static_cast<int>(memory[0]));
  if (static_cast<int>(memory[0]) % 5 == 0) plan.now.mode = Mode::defer;
}

}  // namespace
extern const ControllerEntry policy_ratchet;
const ControllerEntry policy_ratchet{
    .role = Role::batch, .name = "ratchet", .help = "test only", .propose = &propose, .memory = 1};
}  // namespace rivulet::sync::policy
