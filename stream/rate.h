#pragma once
#include <cstdint>

#include "core/time.h"

namespace rivulet::stream {

/// Rows per second of a stream, measured on arrival over a window of recent rows. Takes the time as an
/// argument, so it needs no clock. After `window` without a row the rate is exactly 0. Owner: the ingest
/// thread.
class RateEstimate {
 public:
  explicit RateEstimate(Duration window = std::chrono::seconds(2)) noexcept;
  void arrived(std::uint64_t rows, TimePoint now) noexcept;
  /// Rows per second at `now`. During the first window, the divisor is the time since the first arrival.
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

/// Growth of a log in records per second, averaged over the last seconds. Estimated from observed end
/// offsets, which may be far apart or constant for a while (a paused partition). Owner: the ingest thread.
class GrowthEstimate {
 public:
  explicit GrowthEstimate(Duration window = std::chrono::seconds(5)) noexcept : window_(window) {}
  /// Records the end offset. The first offset, and one below its predecessor, only restart the measurement.
  void reached(std::int64_t end, TimePoint now) noexcept;
  /// Growth rate at `now`. After a window without growth, at most 1 / (time since the last growth).
  [[nodiscard]] double per_second(TimePoint now) const noexcept;

 private:
  Duration window_;
  std::int64_t end_ = -1;
  TimePoint since_{};  ///< time of the last observed growth
  double rate_ = 0;
  bool known_ = false;
};

}  // namespace rivulet::stream
