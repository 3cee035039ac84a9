#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/rng.h"
#include "stream/dataset.h"
#include "stream/open.h"
#include "stream/source/local_source.h"

namespace rivulet::stream {
namespace {

/// Every partition plays the whole data set in an order of its own, so what a partition holds does not depend
/// on which device reads it beside which others.
class FileSource final : public LocalSource {
 public:
  FileSource(std::unique_ptr<Dataset> data, const FileSourceConfig& config, const Clock& clock)
      : LocalSource(config.partitions),
        clock_(clock),
        data_(std::move(data)),
        rate_(config.rows_per_second),
        repeat_(config.repeat),
        seed_(config.seed),
        start_(clock.now()),
        orders_(config.partitions.size()),
        base_(config.partitions.size(), 0) {
    for (const auto& [id, offset] : config.resume)
      if (const std::size_t i = index_of(id); i < base_.size()) base_[i] = states()[i].next_offset = offset;
    show_watermarks(start_);
  }

  Result<std::span<const Record>> poll(std::size_t max_records, Duration) override {
    const TimePoint now = clock_.now();
    set_paused(max_records == 0);
    out_.clear();
    bool more = true;
    while (more && out_.size() < max_records) {  // one of each partition in turn
      more = false;
      for (std::size_t i = 0; i < states().size() && out_.size() < max_records; ++i)
        if (!finished(i) && due(i) <= now) {
          hand_out(i);
          more = true;
        }
    }
    show_watermarks(now);
    return std::span<const Record>(out_);
  }

  Status seek(std::span<const NextOffset> positions) override {
    if (auto status = check_positions(positions); !status) return status;
    for (const auto& position : positions) {
      const std::size_t i = index_of(position.partition);
      states()[i].next_offset = position.offset;
      // Forward of what is due, the stream continues from there at its rate.
      if (position.offset > due_count(i, clock_.now())) {
        base_[i] = position.offset - (due_count(i, clock_.now()) - base_[i]);
      }
    }
    return ok();
  }

  [[nodiscard]] bool exhausted() const noexcept override {
    for (std::size_t i = 0; i < base_.size(); ++i)
      if (!finished(i)) return false;
    return true;
  }

  [[nodiscard]] TimePoint next_due() const noexcept override {
    TimePoint first = TimePoint::max();
    for (std::size_t i = 0; i < base_.size(); ++i)
      if (!finished(i)) first = std::min(first, due(i));
    return first;
  }

 private:
  struct Order {
    std::int64_t epoch = -1;
    std::vector<std::uint32_t> records;
  };

  [[nodiscard]] std::int64_t length() const noexcept { return static_cast<std::int64_t>(data_->size()); }
  [[nodiscard]] bool finished(std::size_t i) const noexcept {
    return length() == 0 || (!repeat_ && partitions()[i].next_offset >= length());
  }
  /// When the next record of partition i may go out. Record base + k is due k / rate after the start.
  [[nodiscard]] TimePoint due(std::size_t i) const noexcept {
    const auto ahead = static_cast<double>(partitions()[i].next_offset - base_[i]);
    return rate_ > 0 && ahead > 0 ? start_ + Duration(std::llround(std::ceil(ahead / rate_ * 1e9))) : start_;
  }
  /// One past the last offset that is due at `now`.
  [[nodiscard]] std::int64_t due_count(std::size_t i, TimePoint now) const noexcept {
    if (rate_ <= 0) return repeat_ ? partitions()[i].next_offset : length();
    const auto produced = static_cast<std::int64_t>(std::floor(to_seconds(now - start_) * rate_ + 1e-6)) + 1;
    return repeat_ ? base_[i] + produced : std::min(base_[i] + produced, length());
  }

  void hand_out(std::size_t i) {
    auto& state = states()[i];
    const std::size_t record = record_at(i, state.next_offset);
    out_.push_back({.partition = state.id, .offset = state.next_offset++, .value = data_->value(record)});
  }

  /// Which record lies at an offset: the epoch's order of this partition, remembered while it lasts.
  std::size_t record_at(std::size_t i, std::int64_t offset) {
    auto& order = orders_[i];
    const std::int64_t epoch = offset / length();
    if (order.epoch != epoch) {
      order.epoch = epoch;
      order.records.resize(data_->size());
      std::iota(order.records.begin(), order.records.end(), 0U);
      const auto id = partitions()[i].id;
      const std::uint64_t stream =
          (static_cast<std::uint64_t>(id.topic) << 32U) | static_cast<std::uint32_t>(id.partition);
      Rng rng =
          Rng::derive(derive_seed(seed_, "file source", stream), "epoch", static_cast<std::uint64_t>(epoch));
      for (std::size_t n = order.records.size(); n > 1 && seed_ != 0; --n)
        std::swap(order.records[n - 1], order.records[rng.below(n)]);
    }
    return order.records[static_cast<std::size_t>(offset % length())];
  }

  void show_watermarks(TimePoint now) noexcept {
    for (std::size_t i = 0; i < states().size(); ++i)
      states()[i].high_watermark = std::max(due_count(i, now), states()[i].next_offset);
  }

  // constant
  const Clock& clock_;
  std::unique_ptr<Dataset> data_;
  double rate_;
  bool repeat_;
  std::uint64_t seed_;
  TimePoint start_;
  // ingest thread
  std::vector<Order> orders_;
  std::vector<std::int64_t> base_;  ///< offset that was due at the start
  std::vector<Record> out_;
};

}  // namespace

Result<std::unique_ptr<RecordSource>> open_file_source(const FileSourceConfig& config, const Clock& clock) {
  if (config.partitions.empty()) return Error{ErrorCode::invalid_config, "a file source needs a partition"};
  auto data = open_dataset(config.path, Split::train);
  if (!data) return data.error();
  if (!config.format.empty() && data.value()->format() != config.format)
    return Error{ErrorCode::invalid_config, config.path + " holds " + data.value()->format() +
                                                " records, but decode.format is \"" + config.format + "\""};
  return std::unique_ptr<RecordSource>(std::make_unique<FileSource>(std::move(data).value(), config, clock));
}

}  // namespace rivulet::stream
