#pragma once
#include <cstddef>

#include "core/result.h"
#include "runtime/wiring/simulate.h"

namespace rivulet::runtime {

/// The times that a simulation counts in nanoseconds must fit them, with room for sums: about three years.
constexpr double simulated_seconds_max = 1e8;
/// Rows per second of a stream, at most: a source makes every row of the time that has passed, one by one.
constexpr double simulated_rate_max = 1e7;
/// A batch or a message that takes longer than a year for each row or byte is a slip of the pen.
constexpr double simulated_speed_min = 1e-6;

/// Whether the numbers of a scenario mean something in a group of `devices`: none too small or too large for
/// the clock, no stream, profile or link too many, nothing that only streams which never come could end.
/// Pure. Errors: usage (names the option).
Status check_scenario(const SimulateOptions& options, std::size_t devices);

}  // namespace rivulet::runtime
