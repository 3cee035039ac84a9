#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#include "core/rng.h"
#include "stream/open.h"
#include "stream/source/local_source.h"

namespace rivulet::stream {
namespace {

/// Number of records that a stream with a changing rate has produced. Counted on a fixed time grid, so that
/// the result does not depend on when it is queried.
class Production {
 public:
  Production(std::function<double(TimePoint)> rate, TimePoint start)
      : rate_(std::move(rate)),
        slice_begin_(TimePoint(start.time_since_epoch() / slice * slice)),
        start_(start) {
    rate_now_ = rate_at(slice_begin_);
  }

  /// Records produced until `now`, which must not decrease.
  std::int64_t until(TimePoint now) {
    while (now >= slice_begin_ + slice) close_slice();
    return whole(before_ + rate_now_ * seconds_in_slice(now));
  }

  /// A time at which at least `count` records will exist, or the end of the look-ahead if that comes first.
  [[nodiscard]] TimePoint when(std::int64_t count) const {
    double need = static_cast<double>(count) - before_;
    double rate = rate_now_;
    TimePoint begin = std::max(slice_begin_, start_);
    TimePoint end = slice_begin_ + slice;
    for (int i = 0; i < look_ahead; ++i) {
      const double produced = rate * to_seconds(end - begin);
      if (rate > 0 && need <= produced + tolerance)
        return begin + Duration(1) + from_seconds(std::max(0.0, need / rate));
      need -= produced;
      begin = end;
      end += slice;
      rate = rate_at(begin);
    }
    return begin;
  }

 private:
  static constexpr Duration slice = std::chrono::milliseconds(10);
  static constexpr double tolerance = 1e-6;  ///< in records: sums of slices are inexact
  static constexpr int look_ahead = 100;     ///< slices; a silent stream is checked again after a second

  [[nodiscard]] double rate_at(TimePoint t) const { return std::max(0.0, rate_ ? rate_(t) : 0.0); }
  [[nodiscard]] double seconds_in_slice(TimePoint now) const {
    return std::max(0.0, to_seconds(now - std::max(slice_begin_, start_)));
  }
  static std::int64_t whole(double produced) {
    return static_cast<std::int64_t>(std::floor(produced + tolerance));
  }
  void close_slice() {
    before_ += rate_now_ * seconds_in_slice(slice_begin_ + slice);
    slice_begin_ += slice;
    rate_now_ = rate_at(slice_begin_);
  }

  std::function<double(TimePoint)> rate_;
  TimePoint slice_begin_;
  TimePoint start_;
  double before_ = 0;  ///< produced in past slices
  double rate_now_ = 0;
};

/// Offsets of a partition that a seek has jumped over.
struct Jumped {
  std::int64_t offsets = 0;
};

class SyntheticSource final : public LocalSource<Jumped> {
 public:
  SyntheticSource(const SyntheticSourceConfig& config, const Clock& clock)
      : clock_(clock),
        columns_(config.columns),
        classes_(config.classes),
        blank_(config.blank),
        seed_(config.seed),
        production_(config.rows_per_second, clock.now()) {
    next_due_ = production_.when(1);
    if (blank_) return;
    Rng rng = Rng::derive(seed_, "synthetic weights");
    weights_.resize(columns_ * std::max<std::size_t>(classes_, 1));
    for (auto& w : weights_) w = static_cast<float>(rng.normal());
  }

  Result<std::span<const Record>> poll(std::size_t max_records, Duration) override {
    const TimePoint now = clock_.now();
    const std::int64_t produced = production_.until(now);
    set_paused(max_records == 0);
    out_.clear();
    bytes_.resize(std::min(max_records, waiting(produced)) * record_bytes());
    bool more = true;
    while (more && out_.size() < max_records) {  // round-robin over the partitions
      more = false;
      for (std::size_t i = 0; i < size() && out_.size() < max_records; ++i)
        if (state(i).next_offset < produced + own(i).offsets) {
          hand_out(i);
          more = true;
        }
    }
    look_ahead(now, produced);
    return std::span<const Record>(out_);
  }

  [[nodiscard]] bool exhausted() const noexcept override { return false; }
  [[nodiscard]] TimePoint next_due() const noexcept override { return next_due_; }

 private:
  Jumped begin(PartitionState& state, std::optional<std::int64_t> offset) override {
    Jumped jumped;
    if (offset) move(state, jumped, *offset);
    return jumped;
  }
  /// A stream resumed far ahead continues from there immediately, without a silent phase.
  void move(PartitionState& state, Jumped& jumped, std::int64_t offset) override {
    const std::int64_t produced = production_.until(clock_.now());
    state.next_offset = offset;
    if (offset > produced + jumped.offsets) jumped.offsets = offset - produced;
  }
  void assigned() override {
    const TimePoint now = clock_.now();
    look_ahead(now, production_.until(now));
  }

  [[nodiscard]] std::size_t record_bytes() const noexcept { return (columns_ + 1) * sizeof(float); }

  /// Number of produced records that were not returned yet.
  [[nodiscard]] std::size_t waiting(std::int64_t produced) noexcept {
    std::int64_t all = 0;
    for (std::size_t i = 0; i < size(); ++i)
      all += std::max<std::int64_t>(produced + own(i).offsets - state(i).next_offset, 0);
    return static_cast<std::size_t>(all);
  }

  void hand_out(std::size_t i) {
    auto& at = state(i);
    const std::span<std::byte> value =
        std::span(bytes_).subspan(out_.size() * record_bytes(), record_bytes());
    write_row(at.id, at.next_offset, value);
    out_.push_back({.partition = at.id, .offset = at.next_offset++, .value = value});
  }

  /// A pure function of seed, partition and offset, so that any offset can be reread.
  void write_row(PartitionId id, std::int64_t offset, std::span<std::byte> value) {
    if (blank_) return (void)std::memset(value.data(), 0, value.size());
    const std::uint64_t stream =
        (static_cast<std::uint64_t>(id.topic) << 32U) | static_cast<std::uint32_t>(id.partition);
    Rng rng =
        Rng::derive(derive_seed(seed_, "synthetic rows", stream), "row", static_cast<std::uint64_t>(offset));
    row_.resize(columns_ + 1);
    for (std::size_t c = 0; c < columns_; ++c) row_[c + 1] = static_cast<float>(rng.normal());
    row_[0] = classes_ > 0 ? class_of(rng) : score(0) + noise * static_cast<float>(rng.normal());
    std::memcpy(value.data(), row_.data(), value.size());
  }

  /// w . x of one output, with unit variance.
  [[nodiscard]] float score(std::size_t output) const noexcept {
    float sum = 0;
    for (std::size_t c = 0; c < columns_; ++c) sum += weights_[output * columns_ + c] * row_[c + 1];
    return sum / std::sqrt(static_cast<float>(columns_));
  }

  float class_of(Rng& rng) const noexcept {
    std::size_t best = 0;
    float highest = 0;
    for (std::size_t k = 0; k < classes_; ++k) {
      const float s = score(k) + noise * static_cast<float>(rng.normal());
      if (k == 0 || s > highest) std::tie(best, highest) = std::pair(k, s);
    }
    return static_cast<float>(best);
  }

  void look_ahead(TimePoint now, std::int64_t produced) {
    bool waiting = false;
    for (std::size_t i = 0; i < size(); ++i) {
      state(i).high_watermark = std::max(produced + own(i).offsets, state(i).next_offset);
      waiting |= state(i).next_offset < state(i).high_watermark;
    }
    next_due_ = waiting ? now : std::max(production_.when(produced + 1), now + Duration(1));
  }

  static constexpr float noise = 0.05F;
  // constant
  const Clock& clock_;
  std::size_t columns_;
  std::size_t classes_;
  bool blank_;
  std::uint64_t seed_;
  std::vector<float> weights_;  ///< [classes or 1, columns]
  // ingest thread
  Production production_;  ///< shared by all partitions
  std::vector<float> row_;
  std::vector<std::byte> bytes_;
  std::vector<Record> out_;
  TimePoint next_due_;
};

}  // namespace

Result<std::unique_ptr<RecordSource>> open_synthetic_source(const SyntheticSourceConfig& config,
                                                            const Clock& clock) {
  if (config.columns == 0)
    return Error{ErrorCode::invalid_config, "a synthetic source needs at least one column"};
  return std::unique_ptr<RecordSource>(std::make_unique<SyntheticSource>(config, clock));
}

}  // namespace rivulet::stream
