#include "tests/support/replay/replay_rows.h"

#include <algorithm>

#include "runtime/node/node.h"
#include "runtime/process/topic_name.h"

namespace rivulet::runtime {
namespace {

constexpr Duration poll_wait = std::chrono::milliseconds(100);
constexpr int empty_polls_max = 150;  // 15 s for a broker

/// Good rows of a rejected batch. The decoder rejects bad rows again itself.
bool was_dropped(const RowPosition& row, std::span<const SkippedRange> runs) {
  return std::ranges::any_of(runs, [&](const SkippedRange& run) {
    return run.fate == static_cast<std::uint32_t>(DropReason::nonfinite_batch) &&
           run.partition == row.partition && run.from <= row.at && row.at < run.to;
  });
}

/// Moves past offsets without records or without decoded rows.
RowCursor behind_holes(const RowPosition& place, std::span<const SkippedRange> runs) {
  constexpr auto truncated = static_cast<std::uint32_t>(DropReason::truncated);
  for (const SkippedRange& run : runs)
    if ((run.fate == fate_hole || run.fate == truncated) && run.partition == place.partition &&
        run.from <= place.at && place.at < run.to &&
        static_cast<std::int64_t>(run.rows) == run.to.offset - run.from.offset)
      return run.to;
  return place.at;
}

}  // namespace

Result<ReplayBatch> ReplayBatch::create(const RowShape& shape, std::size_t rows_max,
                                        devices::Device& device) {
  ReplayBatch batch;
  batch.columns_ = shape.columns();
  batch.targets_per_row_ = shape.targets;
  const std::size_t slots = rows_max + 1;  // a decoder may need one to detect the end of a record
  const std::size_t numbers = slots * (batch.columns_ + batch.targets_per_row_);
  auto memory = device.allocate_shared(numbers * sizeof(float));
  if (!memory) return memory.error();
  batch.memory_ = std::move(memory).value();
  const std::span<float> all = batch.memory_->view(Scalar::f32, numbers).as<float>();
  batch.features_ = all.first(slots * batch.columns_);
  batch.targets_ = all.subspan(slots * batch.columns_);
  batch.tags_.resize(rows_max);
  return batch;
}

RowSlot ReplayBatch::slot() const noexcept {
  return {features_.subspan(rows_ * columns_, columns_),
          targets_.subspan(rows_ * targets_per_row_, targets_per_row_)};
}

BatchView ReplayBatch::view() const noexcept {
  return {features_.first(rows_ * columns_), targets_.first(rows_ * targets_per_row_), rows_,
          std::span(tags_).first(rows_)};
}

std::string ReplayRows::name_of(const PartitionId& partition) const {
  std::vector<std::string> topics = config_.source.topics;
  std::sort(topics.begin(), topics.end());
  return text_of(partition, topics);
}

Result<ReplayRows::Reader*> ReplayRows::reader_at(const PartitionId& partition, const RowCursor& first) {
  const auto known = readers_.find(partition);
  if (known != readers_.end() && known->second.inside.value_or(known->second.at) == first)
    return &known->second;
  readers_.erase(partition);
  auto stream = open_(partition, first.offset);
  if (!stream) return stream.error();
  auto decoder = build_decoder(config_, catalog_);
  if (!decoder) return decoder.error();
  Reader& reader = readers_[partition];
  reader.stream = std::move(stream).value();
  reader.decoder = std::move(decoder).value();
  reader.at = {first.offset, 0};
  return &reader;
}

/// Reads the next record at or after the reader's position.
Status ReplayRows::fetch(const PartitionId& partition, Reader& reader) const {
  const auto away = [&](const std::string& why) {
    return Error{ErrorCode::unavailable, "partition " + name_of(partition) + ", offset " +
                                             std::to_string(reader.at.offset) + ": " + why};
  };
  stream::RecordSource& source = *reader.stream.source;
  for (int empty = 0; empty < empty_polls_max;) {
    auto polled = source.poll(1, poll_wait);
    if (!polled && polled.error().code != ErrorCode::source_lost) return polled.error();
    if (!polled || polled.value().empty()) {
      for (const auto& state : source.partitions())
        if (!state.stopped.empty()) return away(state.stopped);
      if (source.exhausted()) break;
      ++empty;
      if (reader.stream.clock) reader.stream.clock->advance_by(std::chrono::seconds(1));
      continue;
    }
    const Record& record = polled.value().front();
    if (record.offset < reader.at.offset) continue;
    reader.record = &record;
    reader.begun = false;
    return ok();
  }
  return away("rows of the log are missing (retention? another topic?)");
}

Status ReplayRows::take(const RowInterval& rows, std::span<const SkippedRange> runs, ReplayBatch& batch,
                        std::size_t most) {
  auto found = reader_at(rows.partition, rows.first);
  if (!found) return found.error();
  Reader& reader = *found.value();
  reader.inside = rows.first;
  while (reader.at < rows.next) {
    if (most == 0) return ok();
    if (reader.record == nullptr) {
      reader.at = behind_holes({rows.partition, reader.at}, runs);
      if (reader.at >= rows.next) break;  // no record reveals gaps at the end of a log
      if (auto fetched = fetch(rows.partition, reader); !fetched) return fetched;
    }
    if (!reader.begun) {
      reader.at = std::max(reader.at, RowCursor{reader.record->offset, 0});
      if (reader.at >= rows.next) break;  // skips gaps up to here
      reader.decoder->begin(*reader.record);
      reader.row = 0;
      reader.begun = true;
    }
    const stream::Decoded step = reader.decoder->next(batch.slot());
    const RowPosition row{rows.partition, {reader.record->offset, reader.row}};
    if (step.kind == stream::Decoded::Kind::end) {
      reader.at = {reader.record->offset + 1, 0};
      reader.record = nullptr;
      continue;
    }
    reader.row += step.rows;
    reader.at = {row.at.offset, reader.row};
    if (step.kind != stream::Decoded::Kind::row || row.at < rows.first || was_dropped(row, runs)) continue;
    if (batch.full())
      return Error{ErrorCode::bad_record, "a batch of more rows than this configuration has room for"};
    batch.keep();
    --most;
  }
  reader.inside.reset();
  reader.at = rows.next;  // the next record may follow gaps that are not announced yet
  return ok();
}

}  // namespace rivulet::runtime
