#include "sync/round/speculation.h"

namespace rivulet::sync {
namespace {

/// All devices with a weight have rows in this round, and contribute them unchanged.
bool came_as_expected(const Round& round, const policy::Schedule& schedule) {
  const policy::RoundPlan& plan = round.plan();
  if (plan.now.mode != (schedule.local ? policy::Mode::delta : policy::Mode::gradients)) return false;
  for (std::size_t rank = 0; rank < plan.now.weights.size(); ++rank)
    if ((plan.now.weights[rank] > 0) != (round.table.facts[rank].rows > 0)) return false;
  return true;
}

}  // namespace

bool Speculation::speculates(const policy::Schedule& schedule) const noexcept {
  return possible_ && streak_ >= rounds_before && schedule.way.compressor == compressor_ &&
         schedule.way.payload_bytes == payload_bytes_ && payload_bytes_ <= payload_bytes_max;
}

bool Speculation::see(const Round& round, const policy::Schedule& schedule, bool flushes) {
  // A round without rows has no contributions and predicts nothing.
  if (round.totals.rows == 0) return false;
  const bool alike = schedule.way.compressor == compressor_ && schedule.way.payload_bytes == payload_bytes_;
  const bool as_expected = came_as_expected(round, schedule) && !flushes;
  streak_ = as_expected ? (alike ? streak_ + 1 : 1) : 0;
  compressor_ = schedule.way.compressor;
  payload_bytes_ = schedule.way.payload_bytes;
  return as_expected;
}

}  // namespace rivulet::sync
