#include <algorithm>
#include <map>

#include "core/check.h"
#include "stream/open.h"
#include "stream/source/local_source.h"

namespace rivulet::stream {
namespace {

/// Playback state of one partition's script.
struct Playing {
  std::span<const ScriptedRecord> records;  ///< by offset
  std::size_t at = 0;                       ///< next record
  std::size_t shown = 0;                    ///< number of due records; gives the high watermark
};

class ScriptedSource final : public LocalSource<Playing> {
 public:
  ScriptedSource(std::span<const PartitionId> partitions, std::vector<ScriptedRecord> script,
                 const Clock& clock)
      : clock_(clock) {
    for (const auto& id : partitions) scripts_[id];
    for (auto& record : script) {
      const auto of = scripts_.find(record.partition);
      RIVULET_CHECK(of != scripts_.end(), "a scripted record belongs to an unknown partition");
      of->second.push_back(std::move(record));
    }
    for (auto& [id, records] : scripts_)
      std::stable_sort(records.begin(), records.end(),
                       [](const auto& a, const auto& b) { return a.offset < b.offset; });
  }

  Result<std::span<const Record>> poll(std::size_t max_records, Duration) override {
    const TimePoint now = clock_.now();
    out_.clear();
    set_paused(max_records == 0);
    while (out_.size() < max_records) {
      const std::size_t i = earliest();
      if (i == size() || next(i).due > now) break;
      hand_out(i);
    }
    for (std::size_t i = 0; i < size(); ++i) show_due(i, now);
    return std::span<const Record>(out_);
  }

  [[nodiscard]] bool exhausted() const noexcept override { return earliest() == size(); }
  [[nodiscard]] TimePoint next_due() const noexcept override {
    const std::size_t i = earliest();
    return i == size() ? TimePoint::max() : next(i).due;
  }

 private:
  [[nodiscard]] bool has(const PartitionId& id) const override { return scripts_.contains(id); }
  Playing begin(PartitionState& state, std::optional<std::int64_t> offset) override {
    Playing playing{.records = scripts_.at(state.id)};
    if (!playing.records.empty()) state.low_watermark = state.next_offset = playing.records.front().offset;
    state.high_watermark = state.low_watermark;
    if (offset) move(state, playing, *offset);
    return playing;
  }
  void move(PartitionState& state, Playing& playing, std::int64_t offset) override {
    const auto found = std::ranges::lower_bound(playing.records, offset, {}, &ScriptedRecord::offset);
    playing.at = static_cast<std::size_t>(found - playing.records.begin());
    state.next_offset = offset;
  }

  [[nodiscard]] bool finished(std::size_t i) const noexcept { return own(i).at == own(i).records.size(); }
  [[nodiscard]] const ScriptedRecord& next(std::size_t i) const noexcept { return own(i).records[own(i).at]; }
  /// The partition whose next record is due first; size() if all are finished.
  [[nodiscard]] std::size_t earliest() const noexcept {
    std::size_t best = size();
    for (std::size_t i = 0; i < size(); ++i)
      if (!finished(i) && (best == size() || next(i).due < next(best).due)) best = i;
    return best;
  }

  void hand_out(std::size_t i) {
    const ScriptedRecord& record = next(i);
    ++own(i).at;
    out_.push_back({.partition = record.partition,
                    .offset = record.offset,
                    .value = record.value,
                    .tombstone = record.tombstone});
    state(i).next_offset = record.offset + 1;
  }

  void show_due(std::size_t i, TimePoint now) noexcept {
    auto& [records, at, shown] = own(i);
    while (shown < records.size() && records[shown].due <= now)
      state(i).high_watermark = records[shown++].offset + 1;
  }

  // constant
  const Clock& clock_;
  std::map<PartitionId, std::vector<ScriptedRecord>> scripts_;  ///< by offset
  // ingest thread
  std::vector<Record> out_;
};

}  // namespace

std::unique_ptr<RecordSource> open_scripted_source(std::vector<PartitionId> partitions,
                                                   std::vector<ScriptedRecord> records, const Clock& clock) {
  return std::make_unique<ScriptedSource>(partitions, std::move(records), clock);
}

}  // namespace rivulet::stream
