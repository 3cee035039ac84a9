#pragma once
#include <cstdint>
#include <functional>

#include "core/time.h"

namespace rivulet::testing {

/// Deadlines in tests are written for a quiet machine and multiplied by this: they end what hangs, and find
/// nothing about how fast a machine is. Who waits for what comes waits no longer for it.
inline constexpr int deadline_slack = 6;

/// Asks `done` every 10 ms until it returns true; false after `deadline_slack` times `deadline`. For
/// processes and threads; everything else moves a SimClock.
bool wait_until(const std::function<bool()>& done, Duration deadline);

/// Waits until `count` has come to `wanted`; false as soon as it is beyond, and when it has stood still for
/// `deadline_slack` times `still`.
bool wait_for_count(const std::function<std::uint64_t()>& count, std::uint64_t wanted, Duration still);

}  // namespace rivulet::testing
