#include "tests/support/wait.h"

#include <atomic>
#include <thread>

#include "core/clock.h"

namespace rivulet::testing {
namespace {

std::atomic<bool> noted{false};

}  // namespace

void note_deadline_passed() noexcept {
  noted = true;
}

bool take_deadline_note() noexcept {
  return noted.exchange(false);
}

bool wait_until(const std::function<bool()>& done, Duration deadline) {
  const RealClock clock;
  const TimePoint end = clock.now() + deadline;
  while (!done()) {
    if (clock.now() >= end) {
      if (deadline > Duration::zero()) note_deadline_passed();  // else it only looked
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace rivulet::testing
