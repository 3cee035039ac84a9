#include "tests/support/wait.h"

#include <thread>
#include <utility>

#include "core/clock.h"

namespace rivulet::testing {

bool wait_until(const std::function<bool()>& done, Duration deadline) {
  const RealClock clock;
  const TimePoint end = clock.now() + deadline_slack * deadline;
  while (!done()) {
    if (clock.now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

bool wait_for_count(const std::function<std::uint64_t()>& count, std::uint64_t wanted, Duration still) {
  const RealClock clock;
  std::uint64_t last = count();
  TimePoint moved = clock.now();
  while (last < wanted && clock.now() < moved + deadline_slack * still) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::uint64_t now = count();
    if (now != std::exchange(last, now)) moved = clock.now();
  }
  return last == wanted;
}

}  // namespace rivulet::testing
