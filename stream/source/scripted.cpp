#include <algorithm>

#include "stream/open.h"
#include "stream/source/local_source.h"

namespace rivulet::stream {
namespace {

class ScriptedSource final : public LocalSource {
 public:
  ScriptedSource(std::span<const PartitionId> partitions, std::vector<ScriptedRecord> script,
                 const Clock& clock)
      : LocalSource(partitions),
        clock_(clock),
        records_(partitions.size()),
        at_(partitions.size(), 0),
        shown_(partitions.size(), 0) {
    for (auto& record : script) {
      const std::size_t i = index_of(record.partition);
      RIVULET_CHECK(i < records_.size(), "a scripted record of a partition that the script does not have");
      records_[i].push_back(std::move(record));
    }
    for (std::size_t i = 0; i < records_.size(); ++i) {
      std::stable_sort(records_[i].begin(), records_[i].end(),
                       [](const auto& a, const auto& b) { return a.offset < b.offset; });
      if (!records_[i].empty())
        states()[i].low_watermark = states()[i].next_offset = records_[i].front().offset;
      states()[i].high_watermark = states()[i].low_watermark;
    }
  }

  Result<std::span<const Record>> poll(std::size_t max_records, Duration) override {
    const TimePoint now = clock_.now();
    out_.clear();
    set_paused(max_records == 0);
    while (out_.size() < max_records) {
      const std::size_t i = earliest();
      if (i == records_.size() || records_[i][at_[i]].due > now) break;
      hand_out(i);
    }
    for (std::size_t i = 0; i < records_.size(); ++i) show_due(i, now);
    return std::span<const Record>(out_);
  }

  Status seek(std::span<const NextOffset> positions) override {
    if (auto status = check_positions(positions); !status) return status;
    for (const auto& position : positions) {
      const std::size_t i = index_of(position.partition);
      const auto& list = records_[i];
      const auto found =
          std::lower_bound(list.begin(), list.end(), position.offset,
                           [](const auto& record, std::int64_t offset) { return record.offset < offset; });
      at_[i] = static_cast<std::size_t>(found - list.begin());
      states()[i].next_offset = position.offset;
    }
    return ok();
  }

  [[nodiscard]] bool exhausted() const noexcept override { return earliest() == records_.size(); }
  [[nodiscard]] TimePoint next_due() const noexcept override {
    const std::size_t i = earliest();
    return i == records_.size() ? TimePoint::max() : records_[i][at_[i]].due;
  }

 private:
  /// The partition whose next record is due first; records_.size() when all are finished.
  [[nodiscard]] std::size_t earliest() const noexcept {
    std::size_t best = records_.size();
    for (std::size_t i = 0; i < records_.size(); ++i) {
      if (at_[i] == records_[i].size()) continue;
      if (best == records_.size() || records_[i][at_[i]].due < records_[best][at_[best]].due) best = i;
    }
    return best;
  }

  void hand_out(std::size_t i) {
    const ScriptedRecord& record = records_[i][at_[i]++];
    out_.push_back({.partition = record.partition,
                    .offset = record.offset,
                    .value = record.value,
                    .tombstone = record.tombstone});
    states()[i].next_offset = record.offset + 1;
  }

  void show_due(std::size_t i, TimePoint now) noexcept {
    auto& high = states()[i].high_watermark;
    auto& shown = shown_[i];
    while (shown < records_[i].size() && records_[i][shown].due <= now)
      high = records_[i][shown++].offset + 1;
  }

  // constant
  const Clock& clock_;
  std::vector<std::vector<ScriptedRecord>> records_;  ///< per partition, by offset
  // ingest thread
  std::vector<std::size_t> at_;     ///< next of each partition
  std::vector<std::size_t> shown_;  ///< count of each that is due: what the high watermark shows
  std::vector<Record> out_;
};

}  // namespace

std::unique_ptr<RecordSource> open_scripted_source(std::vector<PartitionId> partitions,
                                                   std::vector<ScriptedRecord> records, const Clock& clock) {
  return std::make_unique<ScriptedSource>(partitions, std::move(records), clock);
}

}  // namespace rivulet::stream
