// Even rows, but every seventh round holds them back: what nobody can speculate.
#include "sync/policy/plan.h"

namespace rivulet::sync::policy {
namespace {

void propose(const FactsTable& table, const PolicyConfig&, PolicyState& state, RoundPlan& plan) {
  plan.next_rows.assign(table.size(), 8);
  plan.next_wait = std::chrono::seconds(3);
  plan.why = "even rows";
  if (plan.mode != Mode::gradients || state.round % 7 != 6) return;
  plan.mode = Mode::hold;
  plan.why = "the seventh";
}

}  // namespace
extern const PolicyEntry policy_holds_every_seventh;
const PolicyEntry policy_holds_every_seventh{"holds_every_seventh", "test only", &propose};
}  // namespace rivulet::sync::policy
