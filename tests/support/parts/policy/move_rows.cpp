// Every round, rank 0 gives 8 of its 16 rows to rank 1 before anybody computes.
#include "sync/policy/plan.h"

namespace rivulet::sync::policy {
namespace {

void propose(const FactsTable& table, const PolicyConfig&, PolicyState&, RoundPlan& plan) {
  plan.next.rows.assign(table.size(), 16);
  plan.next.wait = std::chrono::seconds(3);
  plan.next.moves = {{0, 1, 8}};
  plan.why = "rank 0 helps rank 1";
}

}  // namespace
extern const PolicyEntry policy_move_rows;
const PolicyEntry policy_move_rows{"move_rows", "test only", &propose};
}  // namespace rivulet::sync::policy
