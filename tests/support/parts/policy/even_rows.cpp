// batch.rows from everybody and the usual agreement: what other collectives, compressors and moves are
// compared with.
#include "sync/policy/plan.h"

namespace rivulet::sync::policy {
namespace {

void propose(const FactsTable& table, const PolicyConfig& config, PolicyState&, RoundPlan& plan) {
  plan.next.rows.assign(table.size(), config.rows);
  plan.next.wait = std::chrono::seconds(3);
  plan.why = "even rows";
}

}  // namespace
extern const PolicyEntry policy_even_rows;
const PolicyEntry policy_even_rows{"even_rows", "test only", &propose};
}  // namespace rivulet::sync::policy
