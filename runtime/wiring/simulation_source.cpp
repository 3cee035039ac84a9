#include "runtime/wiring/simulation_source.h"

#include <limits>
#include <numeric>

#include "core/rng.h"

namespace rivulet::runtime {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

class TraceSource final : public stream::RecordSource {
 public:
  TraceSource(const stream::Dataset& data, PartitionId partition, RateTrace trace, std::uint64_t seed,
              const Clock& clock)
      : data_(data),
        trace_(std::move(trace)),
        rng_(Rng::derive(seed, "stream", static_cast<std::uint64_t>(partition.partition))),
        clock_(clock),
        order_(data.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    state_.id = partition;
    state_.next_offset = 0;
    state_.low_watermark = 0;
    due_ = after(0);
    shuffle();
  }

  Result<std::span<const Record>> poll(std::size_t max_records, Duration) override {
    records_.clear();
    const double now = to_seconds(clock_.now().time_since_epoch());
    while (records_.size() < max_records && due_ <= now) {
      const std::size_t at = static_cast<std::size_t>(state_.next_offset) % order_.size();
      if (at == 0 && state_.next_offset > 0) shuffle();
      records_.push_back({state_.id, state_.next_offset++, 0, data_.value(order_[at]), false});
      due_ = after(due_);
    }
    state_.paused = max_records == 0;
    state_.high_watermark = state_.next_offset;
    return std::span<const Record>(records_);
  }
  Status commit(std::span<const NextOffset>) override { return ok(); }
  Status seek(std::span<const NextOffset>) override {
    return Error{ErrorCode::unavailable, "a played trace cannot be sought"};
  }
  [[nodiscard]] std::span<const stream::PartitionState> partitions() const noexcept override {
    return {&state_, 1};
  }
  [[nodiscard]] bool exhausted() const noexcept override { return due_ == never; }
  [[nodiscard]] TimePoint next_due() const noexcept override {
    if (due_ == never) return TimePoint::max();
    // Rounded up: asked at this time, the record is due.
    return TimePoint(from_seconds(due_) + std::chrono::nanoseconds(1));
  }

 private:
  /// When the row after one at `seconds` is due.
  [[nodiscard]] double after(double seconds) const {
    while (seconds < never) {
      const double rate = rate_at(trace_, seconds);
      if (rate > 0) return seconds + 1.0 / rate;
      seconds = next_change(trace_, seconds);
    }
    return never;
  }
  void shuffle() {
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[rng_.below(i)]);
  }

  const stream::Dataset& data_;
  const RateTrace trace_;
  Rng rng_;
  const Clock& clock_;
  std::vector<std::size_t> order_;
  std::vector<Record> records_;
  stream::PartitionState state_;
  double due_ = 0;
};

}  // namespace

double rate_at(const RateTrace& trace, double seconds) noexcept {
  double rate = 0;
  for (const auto& [from, value] : trace)
    if (from <= seconds) rate = value;
  return rate;
}

double next_change(const RateTrace& trace, double seconds) noexcept {
  for (const auto& [from, value] : trace)
    if (from > seconds) return from;
  return never;
}

std::unique_ptr<stream::RecordSource> make_trace_source(const stream::Dataset& data, PartitionId partition,
                                                        RateTrace trace, std::uint64_t seed,
                                                        const Clock& clock) {
  return std::make_unique<TraceSource>(data, partition, std::move(trace), seed, clock);
}

}  // namespace rivulet::runtime
