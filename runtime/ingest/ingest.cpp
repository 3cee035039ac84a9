#include "runtime/ingest/ingest.h"

#include <algorithm>
#include <utility>

#include "core/printable.h"
#include "runtime/process/topic_name.h"
#include "runtime/status/health/health_watch.h"

namespace rivulet::runtime {
namespace {

constexpr Duration rest_longest = std::chrono::milliseconds(20);

}  // namespace

Ingest::Metrics::Metrics(MetricsSink& sink, const std::string& format)
    : decoded_rows(sink.counter("decode_records_total", {{"format", format}, {"result", "ok"}})),
      decoded_dropped(sink.counter("decode_records_total", {{"format", format}, {"result", "dropped"}})),
      decode_seconds(sink.histogram("decode_duration_seconds", {{"format", format}})),
      backpressure(sink.counter("backpressure_seconds_total", {{"stage", "buffer"}})) {}

Ingest::Ingest(const IngestConfig& config, const Parts& parts)
    : config_(config),
      parts_(parts),
      watch_(config.topics, parts.status, parts.log),
      features_(parts.decoder, parts.metrics, parts.log),
      health_(std::make_unique<HealthWatch>(config.health, parts.status, parts.metrics, parts.log)),
      metrics_(parts.metrics, config.format),
      truncation_(config.retention, config.largest_batch, parts.rows.capacity()) {
  parts.metrics.gauge("buffer_capacity_rows").set(static_cast<double>(parts.rows.capacity()));
  next_commit_ = parts.clock.now() + config.commit_every;
}

Ingest::~Ingest() = default;

Turn Ingest::step() {
  if (!follow_assignment())
    return {.wake_at = parts_.clock.now() + std::chrono::milliseconds(100), .finished = failure_.has_value()};
  const TimePoint began = parts_.clock.now();
  const bool resting = rests(began);
  int work = resting ? 0 : decode_waiting();
  measure_backpressure(began);
  truncation_.follow(parts_.source, began);
  if (resting || open_.waits())
    parts_.source.keep_alive();
  else if (!failure_)
    work += read_records();
  parts_.rows.flush();
  open_.newest_amendable = false;
  if (work > 0) parts_.worker.notify();
  const TimePoint now = parts_.clock.now();
  count_published(now);
  commit_if_due(now);
  publish_status(now);
  Turn turn;
  turn.work = work;
  turn.finished = failure_.has_value();
  turn.wake_at = std::min({parts_.source.next_due(), next_commit_, now + std::chrono::milliseconds(100)});
  if (resting_until_) turn.wake_at = std::min(turn.wake_at, *resting_until_);
  if (turn.wake_at <= now) turn.wake_at = now + std::chrono::milliseconds(1);
  return turn;
}

/// True while a buffer that was full stays unfilled: until Worker notifies that much of it is free, or a time
/// limit. Otherwise every batch that leaves the buffer would wake this thread.
bool Ingest::rests(TimePoint now) {
  if (parts_.rows.free_rows() == 0) {
    resting_until_ = now + rest_longest;
    return false;  // the spare slot is still free, to find the end of a record
  }
  if (!resting_until_) return false;
  if (!parts_.rows.is_worth_filling() && now < *resting_until_) return true;
  resting_until_.reset();
  return false;
}

/// Applies a new assignment. Discards everything that was read but not published, including a partly decoded
/// record.
bool Ingest::follow_assignment() {
  if (parts_.assignments.take(assignment_)) {
    open_ = {};
    expected_.clear();
    const buffer::Cursors begins = parts_.ledger.begins();
    for (auto& [partition, from] : assignment_.cursors) {
      // The group has not used this partition yet: reads it again from where this device began, since those
      // rows were in flight.
      if (const auto began = begins.find(partition); !from && began != begins.end()) from = began->second;
      if (!from) continue;
      parts_.ledger.began(partition, *from);
      expected_.emplace(partition, *from);
    }
    parts_.ledger.restart(assignment_);
    assigned_ = false;
  }
  if (assigned_) return true;
  if (auto told = parts_.source.assign(assignment_); !told) {
    handle_source_error(told.error());
    return false;
  }
  assigned_ = true;
  return true;
}

/// True for rows before the assigned cursor but in the same record.
bool Ingest::is_passed(const RowPosition& row) const {
  const auto from = assignment_.cursors.find(row.partition);
  return from != assignment_.cursors.end() && from->second && row.at < *from->second;
}

int Ingest::read_records() {
  const std::size_t room =
      truncation_.room(config_.records_per_step, parts_.rows.waiting(), parts_.rows.free_rows());
  auto polled = parts_.source.poll(room, config_.poll_wait);
  if (!polled) {
    handle_source_error(polled.error());
    return 0;
  }
  open_.records = polled.value();
  open_.at = 0;
  for (const stream::Gap& gap : parts_.source.take_gaps())
    if (expected_.contains(gap.partition)) pass_holes(gap.partition, gap.to);
  std::uint64_t bytes = 0;
  for (const auto& r : open_.records) {
    bytes += r.value.size();
    const RowCursor first{r.offset, 0};
    if (expected_.try_emplace(r.partition, first).second) parts_.ledger.began(r.partition, first);
  }
  parts_.status.records_consumed += open_.records.size();
  parts_.status.bytes_consumed += bytes;
  return decode_waiting();
}

/// False for a record that contains the assigned cursor: some of its rows are already accounted for.
bool Ingest::is_too_much(const Record& record) const {
  return !is_passed({record.partition, {record.offset, 0}}) &&
         truncation_.drops(record, parts_.rows.waiting() + published_, parts_.source);
}

void Ingest::truncate(const Record& record) {
  pass_holes(record.partition, record.offset);
  expected_[record.partition] = {record.offset + 1, 0};
  open_.newest_amendable = false;
  constexpr auto reason = static_cast<std::uint32_t>(DropReason::truncated);
  parts_.ledger.passed({record.partition, {record.offset, 0}, {record.offset + 1, 0}, 1, reason});
  count_dropped(DropReason::truncated, 1);
  if (std::exchange(has_truncated_, true)) return;
  parts_.log.write(
      Level::warn, "rows arrive faster than they are trained: rows that do not fit are dropped",
      {{"keys", "source.retention"},
       {"first", text_of(record.partition, config_.topics) + ", offset " + std::to_string(record.offset)}});
}

void Ingest::count_dropped(DropReason reason, std::uint64_t rows) {
  parts_.status.rows_dropped[reason] += rows;
  parts_.gauge.rows_dropped.fetch_add(rows, std::memory_order_relaxed);
}

/// Adds the time since the last call if the buffer was full then.
void Ingest::measure_backpressure(TimePoint now) {
  if (full_at_) metrics_.backpressure.add(to_seconds(now - *full_at_));
  full_at_ = parts_.rows.free_rows() == 0 ? std::optional(now) : std::nullopt;
}

void Ingest::handle_source_error(const Error& error) {
  open_.records = {};
  open_.at = 0;
  if (error.code == ErrorCode::source_lost) {
    parts_.log.write(Level::warn, error.message);
    return;
  }
  failure_ = error;
}

int Ingest::decode_waiting() {
  if (!open_.waits()) return 0;
  const TimePoint began = parts_.clock.now();
  const std::uint64_t published_before = published_;
  int done = 0;
  while (open_.waits() && !failure_ && parts_.ledger.has_room()) {
    if (!decode_one(open_.records[open_.at])) break;
    ++open_.at;
    ++done;
  }
  // No observation if the buffer is still full.
  if (done == 0 && published_ == published_before) return done;
  features_.look(published_ - published_before);
  metrics_.decode_seconds.observe(to_seconds(parts_.clock.now() - began));
  return done;
}

/// Records the offsets up to `next` as a hole: compacted, transaction markers, or deleted unread.
void Ingest::pass_holes(const PartitionId& partition, std::int64_t next) {
  RowCursor& expected = expected_.try_emplace(partition, RowCursor{next, 0}).first->second;
  const std::int64_t holes = next - expected.offset;
  if (holes <= 0) return;
  parts_.ledger.passed({partition, expected, {next, 0}, static_cast<std::uint64_t>(holes), fate_hole});
  expected = {next, 0};
}

void Ingest::open_record(const Record& record) {
  pass_holes(record.partition, record.offset);
  expected_[record.partition] = {record.offset + 1, 0};
  parts_.decoder.begin(record);
  open_.in_decoder = true;
  open_.newest_amendable = false;
  open_.row = 0;
  open_.any_good_row = false;
  open_.any_row = is_passed({record.partition, {record.offset, 0}});
}

void Ingest::write_drop(const RowCursor& to) {
  if (!open_.drop) return;
  open_.drop->to = to;
  parts_.ledger.passed(*open_.drop);
  open_.drop.reset();
}

bool Ingest::decode_one(const Record& record) {
  if (!open_.in_decoder && is_too_much(record)) {
    truncate(record);
    return true;
  }
  if (!open_.in_decoder) open_record(record);
  while (!failure_) {
    if (!open_.row_waits) {
      const stream::Decoded step = parts_.decoder.next(parts_.rows.claim());
      if (step.kind == stream::Decoded::Kind::end) {
        finish_record(record);
        return true;
      }
      if (step.kind == stream::Decoded::Kind::dropped) {
        drop(record, step);
        continue;
      }
      if (is_passed({record.partition, {record.offset, open_.row}})) {
        ++open_.row;
        continue;
      }
    }
    open_.row_waits = parts_.rows.free_rows() == 0;
    if (open_.row_waits) return false;
    publish(record);
  }
  return true;
}

void Ingest::publish(const Record& record) {
  write_drop({record.offset, open_.row});
  RowTag tag;
  tag.position = {record.partition, {record.offset, open_.row}};
  tag.next = {record.offset, open_.row + 1};
  tag.timestamp_ms = record.timestamp_ms;
  tag.generation = assignment_.generation;
  parts_.rows.publish(tag);
  open_.newest_amendable = true;
  open_.any_row = open_.any_good_row = true;
  ++open_.row;
  ++published_;
}

void Ingest::count_published(TimePoint now) {
  if (published_ == 0) return;
  rate_.arrived(published_, now);
  parts_.status.rows_consumed += published_;
  published_ = 0;
}

void Ingest::drop(const Record& record, const stream::Decoded& step) {
  if (is_passed({record.partition, {record.offset, open_.row}})) {
    open_.row += step.rows;
    return;
  }
  write_drop({record.offset, open_.row});
  open_.drop = SkippedRange{
      record.partition, {record.offset, open_.row}, {}, step.rows, static_cast<std::uint32_t>(step.reason)};
  open_.any_row = true;
  open_.newest_amendable = false;
  open_.row += step.rows;
  count_dropped(step.reason, step.rows);
  if (is_harmless(step.reason)) return;
  metrics_.decoded_dropped.add(1);
  const std::string where = text_of(record.partition, config_.topics) + ", offset " +
                            std::to_string(record.offset) + ": " + printable(parts_.decoder.detail());
  if (config_.stop_on_bad_row)
    failure_ = Error{ErrorCode::bad_record, "bad row (" + std::string(name_of(step.reason)) + ") at " +
                                                where + "; decode.on_error = \"stop\""};
  else
    parts_.log.write(Level::warn, "row dropped",
                     {{"reason", std::string(name_of(step.reason))}, {"at", where}});
}

/// Sets the cursor after the last row to the next record, so that intervals are adjacent. A record without
/// rows counts as a hole.
void Ingest::finish_record(const Record& record) {
  const RowCursor next{record.offset + 1, 0};
  if (open_.any_good_row) open_.unaccounted_bytes += static_cast<std::uint32_t>(record.value.size());
  if (open_.newest_amendable) {
    parts_.rows.amend_newest(next, std::exchange(open_.unaccounted_bytes, 0));
    metrics_.decoded_rows.add(1);
  }
  write_drop(next);
  if (!open_.any_row) parts_.ledger.passed({record.partition, {record.offset, 0}, next, 1, fate_hole});
  open_.newest_amendable = false;
  open_.in_decoder = false;
}

void Ingest::commit_if_due(TimePoint now) {
  if (now < next_commit_) return;
  next_commit_ = now + config_.commit_every;
  if (!config_.commit) return;
  parts_.commits.take_news(commit_news_);
  if (commit_news_.empty()) return;
  if (auto committed = parts_.source.commit(commit_news_); !committed)
    parts_.log.write(Level::warn, "offset commit failed", {{"error", committed.error().message}});
}

void Ingest::publish_status(TimePoint now) {
  const double rate = truncation_.is_off() ? rate_.rows_per_second(now) : truncation_.rows_per_second(now);
  parts_.gauge.rows_per_second.store(rate, std::memory_order_relaxed);
  parts_.status.stream_rate = rate;
  parts_.status.rows_waiting = parts_.rows.waiting();
  parts_.status.ingest_beat_ns = now.time_since_epoch().count();
  watch_.look(parts_.source, now);
  health_->look(now);
}

}  // namespace rivulet::runtime
