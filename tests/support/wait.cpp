#include "tests/support/wait.h"

#include <atomic>
#include <thread>
#include <utility>

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

bool wait_for_count(const std::function<std::uint64_t()>& count, std::uint64_t wanted, Duration patience) {
  const RealClock clock;
  std::uint64_t last = count();
  TimePoint moved = clock.now();
  while (last < wanted && clock.now() < moved + 2 * patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::uint64_t now = count();
    if (now != std::exchange(last, now)) moved = clock.now();
  }
  return last == wanted;
}

}  // namespace rivulet::testing
