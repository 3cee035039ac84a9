// Ordinary rounds, until round 5 uses a collective that fails after it has encoded.
#include "sync/policy/plan.h"

namespace rivulet::sync::policy {
namespace {

void propose(const FactsTable& table, const PolicyConfig&, PolicyState& state, RoundPlan& plan) {
  plan.next.rows.assign(table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  if (state.round == 4) plan.next.collective = "fails_after_encode";
  plan.why = "round 5 fails";
}

}  // namespace
extern const PolicyEntry policy_fails_in_round_5;
const PolicyEntry policy_fails_in_round_5{"fails_in_round_5", "test only", &propose};
}  // namespace rivulet::sync::policy
