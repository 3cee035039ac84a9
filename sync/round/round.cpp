#include "sync/round/round.h"

namespace rivulet::sync {
namespace {

RoundTotals totals_of(const FactsTable& table, const policy::RoundPlan& plan) {
  RoundTotals totals;
  for (const double weight : plan.now.weights) totals.contributors += weight > 0 ? 1 : 0;
  for (const Facts& f : table.facts) {
    totals.rows += f.rows;
    totals.correct += f.correct;
    totals.loss_sum += f.loss_sum;
  }
  return totals;
}

}  // namespace

Round::Round(FactsTable facts, policy::PolicyState next, std::shared_ptr<ShareCheck> check)
    : table(std::move(facts)),
      state(std::move(next)),
      plan_hash(policy::hash_of(state.last, state.table_hash)),
      totals(totals_of(table, state.last)),
      work(std::move(check)) {}

std::shared_ptr<const Round> first_round(policy::PolicyState state, std::shared_ptr<ShareCheck> check) {
  FactsTable table;
  table.facts.resize(state.last.next.rows.size());
  table.sections.resize(table.facts.size());
  return std::make_shared<const Round>(std::move(table), std::move(state), std::move(check));
}

}  // namespace rivulet::sync
