// One round of every kind, in this order and whatever the numbers are: hold, hold, local, the sum of
// movements, five of gradients, hold, and gradients until the end. Rounds without rows are between them.
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double> memory, RoundPlan& plan) {
  plan.next.rows.assign(in.table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  plan.why = "each mode in turn";
  if (plan.now.mode == Mode::idle) return;
  const double turn = memory[0]++;
  if (turn < 2 || turn == 9) plan.now.mode = Mode::hold;
  if (turn == 2) plan.now.mode = Mode::local;
}

}  // namespace
extern const ControllerEntry policy_each_mode;
const ControllerEntry policy_each_mode{Role::batch, "each_mode", "test only", &propose, {}, {}, 1};
}  // namespace rivulet::sync::policy
