#include "core/clock.h"

#include <ctime>

namespace rivulet {
namespace {

double seconds_of(clockid_t id) noexcept {
  timespec t{};
  clock_gettime(id, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

TimePoint RealClock::now() const noexcept {
  return TimePoint(std::chrono::steady_clock::now().time_since_epoch());
}

double thread_cpu_seconds() noexcept {
  return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}
double process_cpu_seconds() noexcept {
  return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

long long unix_time_ms() noexcept {
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<long long>(t.tv_sec) * 1000 + t.tv_nsec / 1'000'000;
}

}  // namespace rivulet
