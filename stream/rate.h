#pragma once
#include <cstdint>

#include "core/time.h"

namespace rivulet::stream {

/// Rows per second of a stream, measured where they arrive. Gets time as an argument, so it needs no clock.
/// A window of recent arrivals; silence drives it to zero: after `window` without a row it is exactly 0.
/// Owner: the ingest thread.
class RateEstimate {
 public:
  explicit RateEstimate(Duration window = std::chrono::seconds(2)) noexcept;
  void arrived(std::uint64_t rows, TimePoint now) noexcept;
  /// Rows per second at `now`. During the first window it divides by the time since the first arrival.
  [[nodiscard]] double rows_per_second(TimePoint now) noexcept;

 private:
  static constexpr int buckets = 20;
  void roll_to(TimePoint now) noexcept;
  Duration bucket_;
  std::uint64_t count_[buckets] = {};
  std::int64_t head_ = -1;  ///< absolute index of the newest bucket
  TimePoint started_{};
  bool any_ = false;
};

/// Records per second that a log grows by, seen from looks at where it ends, which may be far apart or see
/// nothing new for a while (a paused partition). An average of the last seconds. Owner: the ingest thread.
class GrowthEstimate {
 public:
  explicit GrowthEstimate(Duration window = std::chrono::seconds(5)) noexcept : window_(window) {}
  /// Never less than before; the first look only begins.
  void reached(std::int64_t end, TimePoint now) noexcept;
  /// A log that was seen to grow no more for long grows no faster than one record since.
  [[nodiscard]] double per_second(TimePoint now) const noexcept;

 private:
  Duration window_;
  std::int64_t end_ = -1;
  TimePoint since_{};  ///< of the last growth that was seen
  double rate_ = 0;
  bool known_ = false;
};

}  // namespace rivulet::stream
