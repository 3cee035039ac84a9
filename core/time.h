#pragma once
#include <chrono>

namespace rivulet {

using Duration = std::chrono::nanoseconds;

/// The runtime's own time line. It has no now(): time can only come from a Clock.
struct RuntimeTime {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  static constexpr bool is_steady = true;
};
using TimePoint = std::chrono::time_point<RuntimeTime, Duration>;

constexpr double to_seconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}
constexpr Duration from_seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

/// Reads time; never waits (the runners do that). Thread-safe to read.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual TimePoint now() const noexcept = 0;
};

}  // namespace rivulet
