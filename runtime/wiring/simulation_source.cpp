#include "runtime/wiring/simulation_source.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>

#include "core/rng.h"
#include "runtime/wiring/simulation_limits.h"

namespace rivulet::runtime {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

RateTrace::const_iterator first_after(const RateTrace& trace, double seconds) {
  return std::upper_bound(trace.begin(), trace.end(), seconds,
                          [](double s, const auto& step) { return s < step.first; });
}

class TraceSource final : public stream::RecordSource {
 public:
  TraceSource(const stream::Dataset& data, std::vector<std::uint32_t> records, PartitionId partition,
              RateTrace trace, std::uint64_t seed, const Clock& clock, stream::Order order)
      : data_(data),
        played_(std::move(records)),
        trace_(std::move(trace)),
        seed_(seed),
        clock_(clock),
        kept_(order == stream::Order::kept) {
    if (played_.empty()) {
      played_.resize(data.size());
      std::iota(played_.begin(), played_.end(), std::uint32_t{0});
    }
    state_.id = partition;
    state_.next_offset = state_.low_watermark = state_.high_watermark = 0;
    due_ = after(0);
    begin();
  }

  Result<std::span<const Record>> poll(std::size_t max_records, Duration) override {
    records_.clear();
    produce();
    while (reads_ && records_.size() < max_records && state_.next_offset < state_.high_watermark) {
      records_.push_back({state_.id, state_.next_offset, 0, value_at(state_.next_offset), false});
      ++state_.next_offset;
    }
    state_.paused = max_records == 0;
    return std::span<const Record>(records_);
  }
  Status commit(std::span<const NextOffset>) override { return ok(); }
  /// Accepts one partition or none.
  Status assign(const Assignment& assignment) override {
    produce();
    for (const auto& [id, cursor] : assignment.cursors)
      if (id != state_.id || (cursor && (cursor->offset < 0 || cursor->offset > state_.high_watermark)))
        return Error{ErrorCode::unavailable, "the simulated stream lacks the requested partition or offset"};
    const bool had = std::exchange(reads_, !assignment.cursors.empty());
    if (!reads_) return ok();
    const auto& cursor = assignment.cursors.begin()->second;
    if (cursor || !had) state_.next_offset = cursor ? cursor->offset : 0;
    return ok();
  }
  [[nodiscard]] std::span<const stream::PartitionState> partitions() const noexcept override {
    return {&state_, reads_ ? 1U : 0U};
  }
  [[nodiscard]] bool exhausted() const noexcept override {
    return due_ == never && (!reads_ || state_.next_offset == state_.high_watermark);
  }
  [[nodiscard]] TimePoint next_due() const noexcept override {
    if (reads_ && state_.next_offset < state_.high_watermark) return clock_.now();
    if (due_ == never) return TimePoint::max();
    // Rounded up, so that the record is due at this time.
    return TimePoint(from_seconds(due_) + std::chrono::nanoseconds(1));
  }

 private:
  /// Adds the rows due so far. Rows stay in the partition until they are read, so a device that starts late
  /// gets all of them.
  void produce() {
    const double now = to_seconds(clock_.now().time_since_epoch());
    for (; due_ <= now; ++state_.high_watermark) due_ = after(due_);
  }
  /// Returns when the row after one at `seconds` is due. The fraction accrued before a change of rate counts.
  [[nodiscard]] double after(double seconds) const {
    double missing = 1;
    while (seconds < never) {
      const double rate = rate_at(trace_, seconds);
      const double change = next_change(trace_, seconds);
      if (rate > 0 && seconds + missing / rate <= change) return due_within_time(seconds + missing / rate);
      if (rate > 0) missing = std::max(0.0, missing - rate * (change - seconds));
      seconds = change;
    }
    return never;
  }
  /// Times beyond the clock's range count as never.
  static double due_within_time(double seconds) { return seconds < simulated_seconds_max ? seconds : never; }
  /// Each pass over the data has its own order, drawn in sequence from the seed.
  std::span<const std::byte> value_at(std::int64_t offset) {
    const std::size_t pass = static_cast<std::size_t>(offset) / order_.size();
    if (pass < pass_) begin();
    while (pass_ < pass) {
      shuffle();
      ++pass_;
    }
    return data_.value(order_[static_cast<std::size_t>(offset) % order_.size()]);
  }
  void begin() {
    rng_ = Rng::derive(seed_, "stream", static_cast<std::uint64_t>(state_.id.partition));
    order_ = played_;
    pass_ = 0;
    shuffle();
  }
  void shuffle() {
    for (std::size_t i = order_.size(); i > 1 && !kept_; --i) std::swap(order_[i - 1], order_[rng_.below(i)]);
  }

  const stream::Dataset& data_;
  std::vector<std::uint32_t> played_;
  const RateTrace trace_;
  const std::uint64_t seed_;
  Rng rng_{0};
  const Clock& clock_;
  const bool kept_;                   ///< keep the order of the data
  std::vector<std::uint32_t> order_;  ///< order of this pass
  std::size_t pass_ = 0;
  std::vector<Record> records_;
  stream::PartitionState state_;
  bool reads_ = false;  ///< the partition is assigned
  double due_ = 0;
};

}  // namespace

double rate_at(const RateTrace& trace, double seconds) noexcept {
  const auto next = first_after(trace, seconds);
  return next == trace.begin() ? 0 : std::prev(next)->second;
}

double next_change(const RateTrace& trace, double seconds) noexcept {
  const auto next = first_after(trace, seconds);
  return next == trace.end() ? never : next->first;
}

std::unique_ptr<stream::RecordSource> make_trace_source(const stream::Dataset& data,
                                                        std::vector<std::uint32_t> records,
                                                        PartitionId partition, RateTrace trace,
                                                        std::uint64_t seed, const Clock& clock,
                                                        stream::Order order) {
  return std::make_unique<TraceSource>(data, std::move(records), partition, std::move(trace), seed, clock,
                                       order);
}

}  // namespace rivulet::runtime
