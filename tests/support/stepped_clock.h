#pragma once
#include <atomic>
#include <cstdint>

namespace rivulet::testing {

/// From now on the wall clock of this process differs from the machine's by `step_ns`, as after a wrong
/// answer of a time server. A program that links this file replaces the functions of libc that read the
/// clock, for itself and for all its libraries; steady clocks and waits are not affected.
void step_wall_clock(const std::atomic<std::int64_t>& step_ns);

}  // namespace rivulet::testing
