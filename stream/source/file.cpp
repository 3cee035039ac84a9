#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/rng.h"
#include "stream/dataset.h"
#include "stream/open.h"
#include "stream/source/local_source.h"

namespace rivulet::stream {
namespace {

/// Playback state of one partition.
struct Played {
  TimePoint start;        ///< when it was assigned
  std::int64_t base = 0;  ///< first offset due at the start
  std::int64_t epoch = -1;
  std::vector<std::uint32_t> order;  ///< record order of the epoch
};

/// Each partition plays the whole data set in its own order, so its content does not depend on which other
/// partitions the device reads.
class FileSource final : public LocalSource<Played> {
 public:
  FileSource(std::unique_ptr<Dataset> data, const FileSourceConfig& config, const Clock& clock)
      : clock_(clock),
        data_(std::move(data)),
        rate_(config.rows_per_second),
        repeat_(config.repeat),
        seed_(config.seed) {}

  Result<std::span<const Record>> poll(std::size_t max_records, Duration) override {
    const TimePoint now = clock_.now();
    set_paused(max_records == 0);
    out_.clear();
    bool more = true;
    while (more && out_.size() < max_records) {  // round-robin over the partitions
      more = false;
      for (std::size_t i = 0; i < size() && out_.size() < max_records; ++i)
        if (!finished(i) && due(i) <= now) {
          hand_out(i);
          more = true;
        }
    }
    show_watermarks(now);
    return std::span<const Record>(out_);
  }

  [[nodiscard]] bool exhausted() const noexcept override {
    for (std::size_t i = 0; i < size(); ++i)
      if (!finished(i)) return false;
    return true;
  }

  [[nodiscard]] TimePoint next_due() const noexcept override {
    TimePoint first = TimePoint::max();
    for (std::size_t i = 0; i < size(); ++i)
      if (!finished(i)) first = std::min(first, due(i));
    return first;
  }

 private:
  Played begin(PartitionState& state, std::optional<std::int64_t> offset) override {
    state.next_offset = offset.value_or(0);
    return {.start = clock_.now(), .base = state.next_offset};
  }
  /// A seek beyond the due offsets continues from there at the configured rate.
  void move(PartitionState& state, Played& played, std::int64_t offset) override {
    const std::int64_t due = due_count(state, played, clock_.now());
    state.next_offset = offset;
    if (offset > due) played.base = offset - (due - played.base);
  }
  void assigned() override { show_watermarks(clock_.now()); }

  [[nodiscard]] std::int64_t length() const noexcept { return static_cast<std::int64_t>(data_->size()); }
  [[nodiscard]] bool finished(std::size_t i) const noexcept {
    return length() == 0 || (!repeat_ && state(i).next_offset >= length());
  }
  /// Due time of the next record of partition i. Record base + k is due k / rate after the start.
  [[nodiscard]] TimePoint due(std::size_t i) const noexcept {
    const TimePoint start = own(i).start;
    const auto ahead = static_cast<double>(state(i).next_offset - own(i).base);
    return rate_ > 0 && ahead > 0 ? start + Duration(std::llround(std::ceil(ahead / rate_ * 1e9))) : start;
  }
  /// One past the last offset due at `now`.
  [[nodiscard]] std::int64_t due_count(const PartitionState& state, const Played& played,
                                       TimePoint now) const noexcept {
    if (rate_ <= 0) return repeat_ ? state.next_offset : length();
    const double produced = std::floor(to_seconds(now - played.start) * rate_ + 1e-6);
    const std::int64_t due = played.base + static_cast<std::int64_t>(produced) + 1;
    return repeat_ ? due : std::min(due, length());
  }

  void hand_out(std::size_t i) {
    auto& at = state(i);
    const std::size_t record = record_at(at.id, own(i), at.next_offset);
    out_.push_back({.partition = at.id, .offset = at.next_offset++, .value = data_->value(record)});
  }

  /// Returns the record at an offset, by the partition's order in this epoch. The order is cached for the
  /// epoch.
  std::size_t record_at(const PartitionId& id, Played& played, std::int64_t offset) {
    auto& order = played.order;
    const std::int64_t epoch = offset / length();
    if (played.epoch != epoch) {
      played.epoch = epoch;
      order.resize(data_->size());
      std::iota(order.begin(), order.end(), 0U);
      const std::uint64_t stream =
          (static_cast<std::uint64_t>(id.topic) << 32U) | static_cast<std::uint32_t>(id.partition);
      Rng rng =
          Rng::derive(derive_seed(seed_, "file source", stream), "epoch", static_cast<std::uint64_t>(epoch));
      for (std::size_t n = order.size(); n > 1 && seed_ != 0; --n)
        std::swap(order[n - 1], order[rng.below(n)]);
    }
    return order[static_cast<std::size_t>(offset % length())];
  }

  void show_watermarks(TimePoint now) noexcept {
    for (std::size_t i = 0; i < size(); ++i)
      state(i).high_watermark = std::max(due_count(state(i), own(i), now), state(i).next_offset);
  }

  // constant
  const Clock& clock_;
  std::unique_ptr<Dataset> data_;
  double rate_;
  bool repeat_;
  std::uint64_t seed_;
  // ingest thread
  std::vector<Record> out_;
};

}  // namespace

Result<std::unique_ptr<RecordSource>> open_file_source(const FileSourceConfig& config, const Clock& clock) {
  auto data = open_dataset(config.path, Split::train);
  if (!data) return data.error();
  if (!config.format.empty() && data.value()->format() != config.format)
    return Error{ErrorCode::invalid_config, config.path + " contains " + data.value()->format() +
                                                " records, but decode.format is \"" + config.format + "\""};
  return std::unique_ptr<RecordSource>(std::make_unique<FileSource>(std::move(data).value(), config, clock));
}

}  // namespace rivulet::stream
