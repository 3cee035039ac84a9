#pragma once
#include <cstdint>
#include <memory>
#include <utility>

#include "core/shared_work.h"
#include "sync/message/facts.h"
#include "sync/message/plan.h"

namespace rivulet::sync {

/// Sums over a table and its plan, for the whole group.
struct RoundTotals {
  std::uint64_t rows = 0;
  std::uint64_t correct = 0;
  double loss_sum = 0;
  std::uint32_t contributors = 0;  ///< ranks with a non-zero weight
  bool operator==(const RoundTotals&) const = default;
};

/// What all devices of a view compute from the facts of a round: equal on all, immutable, and shared by
/// devices in one process. The round before the first facts has the first plan.
struct Round {
  Round(FactsTable facts, policy::PolicyState next, std::shared_ptr<ShareCheck> check);

  const FactsTable table;
  const policy::PolicyState state;  ///< start of the next round's plan; `last` is this round's plan
  const std::uint64_t plan_hash;    ///< hash of plan and table
  const RoundTotals totals;
  mutable SharedWork work;  ///< results derived from this round

  [[nodiscard]] const policy::RoundPlan& plan() const noexcept { return state.last; }
  bool operator==(const Round& other) const {
    return table == other.table && state == other.state && plan_hash == other.plan_hash &&
           totals == other.totals;
  }
};

/// Round zero of a view.
std::shared_ptr<const Round> first_round(policy::PolicyState state, std::shared_ptr<ShareCheck> check);

}  // namespace rivulet::sync
