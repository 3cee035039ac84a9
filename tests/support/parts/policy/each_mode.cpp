// One round of every kind, in this order and whatever the numbers are: hold, hold, local, the sum of
// movements, five of gradients, hold, and gradients until the end. Rounds without rows are between them.
#include "sync/policy/plan.h"

namespace rivulet::sync::policy {
namespace {

void propose(const FactsTable& table, const PolicyConfig&, PolicyState& state, RoundPlan& plan) {
  plan.next.rows.assign(table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  plan.why = "each mode in turn";
  if (plan.now.mode == Mode::idle) return;
  const std::size_t turn = state.memory.size();
  state.memory.push_back(1);
  if (turn < 2 || turn == 9) plan.now.mode = Mode::hold;
  if (turn == 2) plan.now.mode = Mode::local;
}

}  // namespace
extern const PolicyEntry policy_each_mode;
const PolicyEntry policy_each_mode{"each_mode", "test only", &propose};
}  // namespace rivulet::sync::policy
