#pragma once
#include <cstdint>
#include <functional>

#include "core/time.h"

namespace rivulet::testing {

/// Deadlines in tests are set for an idle machine and multiplied by this factor: they end hangs and do not
/// measure speed. Waits for events that occur end early.
inline constexpr int deadline_slack = 6;

/// Calls `done` every 10 ms until it returns true; false after `deadline_slack` times `deadline`. For
/// processes and threads; everything else advances a SimClock.
bool wait_until(const std::function<bool()>& done, Duration deadline);

/// Waits until `count` equals `wanted`; false if it exceeds it, or is unchanged for `deadline_slack` times
/// `still`.
bool wait_for_count(const std::function<std::uint64_t()>& count, std::uint64_t wanted, Duration still);

}  // namespace rivulet::testing
