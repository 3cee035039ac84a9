#include "stream/rate.h"

#include <algorithm>

namespace rivulet::stream {

RateEstimate::RateEstimate(Duration window) noexcept : bucket_(std::max(window / buckets, Duration(1))) {}

void RateEstimate::roll_to(TimePoint now) noexcept {
  const std::int64_t index = now.time_since_epoch() / bucket_;
  if (head_ < 0) head_ = index;
  for (std::int64_t i = std::max(head_ + 1, index - buckets + 1); i <= index; ++i) count_[i % buckets] = 0;
  head_ = std::max(head_, index);
}

void RateEstimate::arrived(std::uint64_t rows, TimePoint now) noexcept {
  roll_to(now);
  // After a silent window, measuring restarts; else the first rows would be averaged over the silence.
  if (!any_ || std::all_of(std::begin(count_), std::end(count_), [](auto n) { return n == 0; }))
    started_ = now;
  any_ = true;
  count_[head_ % buckets] += rows;
}

double RateEstimate::rows_per_second(TimePoint now) noexcept {
  if (!any_) return 0;
  roll_to(now);
  std::uint64_t rows = 0;
  for (const auto n : count_) rows += n;
  // The window begins with its oldest bucket and ends now. The divisor is at least one bucket.
  const TimePoint window_begin{bucket_ * (head_ - buckets + 1)};
  const Duration measured = std::max(now - std::max(window_begin, started_), bucket_);
  return static_cast<double>(rows) / to_seconds(measured);
}

void GrowthEstimate::reached(std::int64_t end, TimePoint now) noexcept {
  if (end_ < 0 || end < end_) {
    end_ = end;
    since_ = now;
    return;
  }
  const double seconds = to_seconds(now - since_);
  if (end == end_ || seconds <= 0) return;
  const double seen = static_cast<double>(end - end_) / seconds;
  rate_ = known_ ? rate_ + std::min(1.0, seconds / to_seconds(window_)) * (seen - rate_) : seen;
  known_ = true;
  end_ = end;
  since_ = now;
}

double GrowthEstimate::per_second(TimePoint now) const noexcept {
  const double seconds = to_seconds(now - since_);
  return seconds > to_seconds(window_) ? std::min(rate_, 1 / seconds) : rate_;
}

}  // namespace rivulet::stream
