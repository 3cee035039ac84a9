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

}  // namespace rivulet::stream
