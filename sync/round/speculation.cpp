#include "sync/round/speculation.h"

namespace rivulet::sync {
namespace {

/// Everybody with a weight has rows of this round, and they are sent as they are, to everybody.
bool came_as_expected(const Round& round, std::uint64_t payload_bytes) {
  const policy::RoundPlan& plan = round.plan();
  if (plan.mode != policy::Mode::gradients || plan.reduction != policy::Reduction::gather ||
      !plan.aggregation.empty() || plan.compressor != Speculation::compressor ||
      plan.payload_max_bytes < payload_bytes)
    return false;
  for (std::size_t rank = 0; rank < plan.weights.size(); ++rank)
    if ((plan.weights[rank] > 0) != (round.table.facts[rank].rows > 0)) return false;
  return true;
}

}  // namespace

bool Speculation::see(const Round& round) {
  // Nobody sends anything in a round without rows: it says nothing about the next.
  if (round.totals.rows == 0) return false;
  const bool as_expected = came_as_expected(round, payload_bytes_);
  streak_ = as_expected ? streak_ + 1 : 0;
  return as_expected;
}

}  // namespace rivulet::sync
