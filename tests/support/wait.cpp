#include "tests/support/wait.h"

#include <thread>

#include "core/clock.h"

namespace rivulet::testing {

bool wait_until(const std::function<bool()>& done, Duration deadline) {
  const RealClock clock;
  const TimePoint end = clock.now() + deadline;
  while (!done()) {
    if (clock.now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace rivulet::testing
