// Agreement by a collective of two dependent phases.
#include "sync/policy/plan.h"

namespace rivulet::sync::policy {
namespace {

void propose(const FactsTable& table, const PolicyConfig&, PolicyState&, RoundPlan& plan) {
  plan.next.rows.assign(table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  plan.next.collective = "two_phases";
  plan.why = "two phases";
}

}  // namespace
extern const PolicyEntry policy_two_phases;
const PolicyEntry policy_two_phases{"two_phases", "test only", &propose};
}  // namespace rivulet::sync::policy
