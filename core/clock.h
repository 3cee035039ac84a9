#pragma once
#include "core/time.h"

namespace rivulet {

/// The machine's monotonic clock.
class RealClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override;
};

/// Simulated time, advanced by its owner. One per simulated thread; never runs backwards.
class VirtualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const noexcept override { return now_; }
  /// Moves forward to `to`; an earlier `to` is ignored.
  void advance_to(TimePoint to) noexcept {
    if (to > now_) now_ = to;
  }
  void advance_by(Duration d) noexcept { advance_to(now_ + d); }

 private:
  TimePoint now_{};
};

/// CPU seconds used so far by the calling thread / by the whole process.
double thread_cpu_seconds() noexcept;
double process_cpu_seconds() noexcept;

/// Wall-clock milliseconds since 1970, for record timestamps and logs only, never for deadlines.
long long unix_time_ms() noexcept;

}  // namespace rivulet
