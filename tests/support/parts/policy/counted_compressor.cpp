// Eight rows from everybody through the counting compressor; in round 7 it is told to send what is not a
// number, and from round 12 on the collective fails after it has encoded.
#include "sync/policy/plan.h"
#include "tests/support/parts/compressor/counting.h"

namespace rivulet::sync::policy {
namespace {

void propose(const FactsTable& table, const PolicyConfig&, PolicyState& state, RoundPlan& plan) {
  plan.next.rows.assign(table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  plan.next.compressor = "counting";
  if (state.round == 6) plan.next.keep_ratio = testing::poison;
  if (state.round >= 11) plan.next.collective = "fails_after_encode";
  plan.why = "counted";
}

}  // namespace
extern const PolicyEntry policy_counted_compressor;
const PolicyEntry policy_counted_compressor{"counted_compressor", "test only", &propose};
}  // namespace rivulet::sync::policy
