// Eight rows from everybody and the usual agreement: what other collectives and codecs are compared with.
#include "sync/policy/plan.h"

namespace rivulet::sync::policy {
namespace {

void propose(const FactsTable& table, const PolicyConfig&, PolicyState&, RoundPlan& plan) {
  plan.next_rows.assign(table.size(), 8);
  plan.next_wait = std::chrono::seconds(3);
  plan.why = "eight rows";
}

}  // namespace
extern const PolicyEntry policy_eight_rows;
const PolicyEntry policy_eight_rows{"eight_rows", "test only", &propose};
}  // namespace rivulet::sync::policy
