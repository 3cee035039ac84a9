#pragma once
#include <cstddef>

#include "core/result.h"
#include "runtime/wiring/simulate.h"

namespace rivulet::runtime {

/// Times of a simulation must fit into nanoseconds, with room for sums: about three years.
constexpr double simulated_seconds_max = 1e8;
/// Maximum rows per second of a stream: a source creates the rows for the elapsed time one by one.
constexpr double simulated_rate_max = 1e7;
/// Minimum rows or bytes per second of a device or link: anything lower is a typing error.
constexpr double simulated_speed_min = 1e-6;

/// Checks the scenario for a group of `devices`: times and rates within the clock's range, no more streams,
/// profiles or links than devices, and a stop condition that does not depend on silent streams. Pure. Errors:
/// usage (names the option).
Status check_scenario(const SimulateOptions& options, std::size_t devices);

}  // namespace rivulet::runtime
