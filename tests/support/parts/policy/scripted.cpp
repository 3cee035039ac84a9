// Rows by round and rank, some of them zero, waiting as long as it takes: batches do not depend on timing.
#include "sync/policy/plan.h"

namespace rivulet::sync::policy {
namespace {

void propose(const FactsTable& table, const PolicyConfig&, PolicyState& state, RoundPlan& plan) {
  for (std::size_t rank = 0; rank < table.size(); ++rank) {
    const auto k = static_cast<std::uint32_t>(state.round);
    const auto r = static_cast<std::uint32_t>(rank);
    plan.next.rows[rank] = (k + r) % 5 == 0 ? 0 : 4 + (7 * k + 5 * r) % 13;
  }
  plan.next.wait = std::chrono::seconds(3);
  plan.why = "scripted";
}

}  // namespace
extern const PolicyEntry policy_scripted;
const PolicyEntry policy_scripted{"scripted", "test only", &propose};
}  // namespace rivulet::sync::policy
