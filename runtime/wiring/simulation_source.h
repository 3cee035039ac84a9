#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "core/clock.h"
#include "runtime/wiring/simulate.h"
#include "stream/dataset.h"
#include "stream/source.h"

namespace rivulet::runtime {

/// Return the rows/s of a trace at `seconds` (0 before its first entry), and the time of its next change
/// (infinity if there is none).
double rate_at(const RateTrace& trace, double seconds) noexcept;
double next_change(const RateTrace& trace, double seconds) noexcept;

/// Replays records of a data set into one partition at the pace of a trace under a virtual clock, forever
/// (reshuffled after each pass, unless their order is kept). `records`: indices of the records to replay;
/// empty = all. The same seed gives the same order. `data` must outlive the source.
std::unique_ptr<stream::RecordSource> make_trace_source(const stream::Dataset& data,
                                                        std::vector<std::uint32_t> records,
                                                        PartitionId partition, RateTrace trace,
                                                        std::uint64_t seed, const Clock& clock,
                                                        stream::Order order = stream::Order::shuffled);

}  // namespace rivulet::runtime
