// The scripted rows, sent with a compressor whose length depends on the data.
#include "sync/policy/plan.h"

namespace rivulet::sync::policy {
namespace {

void propose(const FactsTable& table, const PolicyConfig& config, PolicyState&, RoundPlan& plan) {
  plan.next.rows.assign(table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  plan.next.compressor = "nonzero";
  plan.next.slot_bytes = 4 + 2 * config.contribution_bytes;
  plan.why = "nonzero";
}

}  // namespace
extern const PolicyEntry policy_nonzero_compressor;
const PolicyEntry policy_nonzero_compressor{"nonzero_compressor", "test only", &propose};
}  // namespace rivulet::sync::policy
