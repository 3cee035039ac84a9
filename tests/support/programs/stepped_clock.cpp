#include "tests/support/stepped_clock.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <ctime>

namespace rivulet::testing {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;
const std::atomic<std::int64_t>* step = nullptr;  // NOLINT: set once, before any thread starts

}  // namespace

void step_wall_clock(const std::atomic<std::int64_t>& step_ns) {
  step = &step_ns;
}

}  // namespace rivulet::testing

using rivulet::testing::ns_per_s;
using rivulet::testing::step;

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto failed = static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (failed != 0 || !wall || step == nullptr) return failed;
  const std::int64_t ns = time->tv_sec * ns_per_s + time->tv_nsec + *step;
  time->tv_sec = ns / ns_per_s;
  time->tv_nsec = ns % ns_per_s;
  return 0;
}

extern "C" int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  const int failed = clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return failed;
}

extern "C" time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
