// Even rows, but every seventh round holds them back: what nobody can speculate.
#include "sync/policy/plan.h"

namespace rivulet::sync::policy {
namespace {

void propose(const FactsTable& table, const PolicyConfig&, PolicyState& state, RoundPlan& plan) {
  plan.next.rows.assign(table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  plan.why = "even rows";
  if (plan.now.mode != Mode::gradients || state.round % 7 != 6) return;
  plan.now.mode = Mode::hold;
  plan.why = "the seventh";
}

}  // namespace
extern const PolicyEntry policy_holds_every_seventh;
const PolicyEntry policy_holds_every_seventh{"holds_every_seventh", "test only", &propose};
}  // namespace rivulet::sync::policy
