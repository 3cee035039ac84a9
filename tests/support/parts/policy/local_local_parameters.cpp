// Two steps alone, then one that adds up the movement: what SelSync-like policies will do.
#include "sync/policy/plan.h"

namespace rivulet::sync::policy {
namespace {

void propose(const FactsTable& table, const PolicyConfig&, PolicyState& state, RoundPlan& plan) {
  plan.next.rows.assign(table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  if (plan.now.mode == Mode::idle) return;
  const bool third = state.memory.size() == 2;
  plan.now.mode = third ? Mode::delta : Mode::local;
  if (third)
    state.memory.clear();
  else
    state.memory.push_back(1);
  plan.why = third ? "third round" : "alone";
}

}  // namespace
extern const PolicyEntry policy_local_local_parameters;
const PolicyEntry policy_local_local_parameters{"local_local_parameters", "test only", &propose};
}  // namespace rivulet::sync::policy
