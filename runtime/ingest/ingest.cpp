#include "runtime/ingest/ingest.h"

#include <algorithm>
#include <utility>

#include "core/printable.h"
#include "runtime/process/topic_name.h"
#include "runtime/status/health/health_watch.h"

namespace rivulet::runtime {
namespace {

constexpr Duration rest_longest = std::chrono::milliseconds(20);
constexpr double seconds_kept = 1;  ///< of the stream, where rows may be truncated (ScaDLES: its tick)

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
      metrics_(parts.metrics, config.format) {
  parts.metrics.gauge("buffer_capacity_rows").set(static_cast<double>(parts.rows.capacity()));
  next_commit_ = parts.clock.now() + config.commit_every;
  keep_ = std::min(config.keep_least, parts.rows.capacity());
}

Ingest::~Ingest() = default;

Turn Ingest::step() {
  if (!rewind())
    return {.wake_at = parts_.clock.now() + std::chrono::milliseconds(100), .finished = failure_.has_value()};
  const TimePoint began = parts_.clock.now();
  const bool resting = rests(began);
  int work = resting ? 0 : decode_waiting();
  measure_backpressure(began);
  if (config_.retention != Retention::persist) follow_growth(began);
  if (resting || at_ < records_.size())
    parts_.source.hold();
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

/// A buffer that was full is filled again when Worker notifies that much of it is free, or after a while:
/// else this thread would be woken, and take the processor, for every batch that leaves it.
bool Ingest::rests(TimePoint now) {
  if (parts_.rows.free_rows() == 0) {
    resting_until_ = now + rest_longest;
    return false;  // there is still the spare slot, in which the end of a record is found
  }
  if (!resting_until_) return false;
  if (!parts_.rows.is_worth_filling() && now < *resting_until_) return true;
  resting_until_.reset();
  return false;
}

/// The group stands elsewhere in these partitions: what was read and not handed over is forgotten, half a
/// record too.
bool Ingest::rewind() {
  if (parts_.rewinds.take(generation_, from_)) {
    records_ = {};
    at_ = 0;
    open_.in_decoder = open_.row_waits = open_.newest_amendable = false;
    open_drop_.reset();
    // What the group has not used at all is read again from where this device began: it was on its way, too.
    for (const auto& [partition, at] : parts_.ledger.begins()) from_.try_emplace(partition, at);
    for (const auto& [partition, at] : from_) parts_.ledger.began(partition, at);
    expected_ = from_;
    parts_.ledger.restart(generation_);
    sought_ = false;
  }
  if (sought_) return true;
  std::vector<NextOffset> positions;
  positions.reserve(from_.size());
  for (const auto& [partition, cursor] : from_) positions.push_back({partition, cursor.offset});
  if (auto moved = parts_.source.seek(positions); !moved) {
    handle_source_error(moved.error());
    return false;
  }
  sought_ = true;
  return true;
}

/// Rows of a record in whose middle the group stands.
bool Ingest::is_passed(const RowPosition& row) const {
  const auto from = from_.find(row.partition);
  return from != from_.end() && row.at < from->second;
}

int Ingest::read_records() {
  auto polled = parts_.source.poll(room(), config_.poll_wait);
  if (!polled) {
    handle_source_error(polled.error());
    return 0;
  }
  records_ = polled.value();
  at_ = 0;
  for (const stream::Gap& gap : parts_.source.take_gaps())
    if (expected_.contains(gap.partition)) pass_holes(gap.partition, gap.to);
  std::uint64_t bytes = 0;
  for (const auto& r : records_) {
    bytes += r.value.size();
    const RowCursor first{r.offset, 0};
    if (expected_.try_emplace(r.partition, first).second) parts_.ledger.began(r.partition, first);
  }
  parts_.status.records_consumed += records_.size();
  parts_.status.bytes_consumed += bytes;
  return decode_waiting();
}

std::size_t Ingest::room() const {
  const std::size_t most = config_.records_per_step;
  switch (config_.retention) {
    case Retention::truncate_newest: return most;
    case Retention::truncate_oldest: return parts_.rows.waiting() < keep_ ? most : 0;
    case Retention::persist: break;
  }
  return std::min(most, parts_.rows.free_rows());
}

/// Records that the group stands within are not: some of their rows have a fate already.
bool Ingest::is_too_much(const Record& record) const {
  if (config_.retention == Retention::persist || is_passed({record.partition, {record.offset, 0}}))
    return false;
  const std::size_t waits = parts_.rows.waiting() + published_;
  if (config_.retention == Retention::truncate_newest) return waits >= keep_;
  for (const stream::PartitionState& partition : parts_.source.partitions())
    if (partition.id == record.partition)
      return partition.high_watermark - record.offset >
             static_cast<std::int64_t>(keep_ - std::min(keep_, waits));
  return false;
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
      Level::warn, "rows come faster than they are trained: those that do not fit are dropped",
      {{"keys", "source.retention"},
       {"first", text_of(record.partition, config_.topics) + ", offset " + std::to_string(record.offset)}});
}

void Ingest::count_dropped(DropReason reason, std::uint64_t rows) {
  parts_.status.rows_dropped[reason] += rows;
  parts_.gauge.rows_dropped.fetch_add(rows, std::memory_order_relaxed);
}

/// Time in which there was no room, look by look.
void Ingest::measure_backpressure(TimePoint now) {
  if (full_at_) metrics_.backpressure.add(to_seconds(now - *full_at_));
  full_at_ = parts_.rows.free_rows() == 0 ? std::optional(now) : std::nullopt;
}

void Ingest::handle_source_error(const Error& error) {
  records_ = {};
  at_ = 0;
  if (error.code == ErrorCode::source_lost) {
    parts_.log.write(Level::warn, error.message);
    return;
  }
  failure_ = error;
}

int Ingest::decode_waiting() {
  if (at_ == records_.size()) return 0;
  const TimePoint began = parts_.clock.now();
  const std::uint64_t published_before = published_;
  int done = 0;
  while (at_ < records_.size() && !failure_ && parts_.ledger.has_room()) {
    if (!decode_one(records_[at_])) break;
    ++at_;
    ++done;
  }
  // Looks that find the buffer full still are no batches.
  if (done == 0 && published_ == published_before) return done;
  features_.look(published_ - published_before);
  metrics_.decode_seconds.observe(to_seconds(parts_.clock.now() - began));
  return done;
}

/// Offsets up to `next` hold nothing: compacted away, marks of transactions, or deleted before they were
/// read.
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
  const auto from = from_.find(record.partition);
  open_.any_good_row = false;
  open_.any_row = from != from_.end() && from->second.offset == record.offset && from->second.row > 0;
}

void Ingest::write_drop(const RowCursor& to) {
  if (!open_drop_) return;
  open_drop_->to = to;
  parts_.ledger.passed(*open_drop_);
  open_drop_.reset();
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
  tag.generation = generation_;
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
  open_drop_ = SkippedRange{
      record.partition, {record.offset, open_.row}, {}, step.rows, static_cast<std::uint32_t>(step.reason)};
  open_.any_row = true;
  open_.newest_amendable = false;
  open_.row += step.rows;
  count_dropped(step.reason, step.rows);
  if (step.reason == DropReason::filtered) return;
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

/// The cursor after a record's last row is the next record, so that what follows touches it. A record without
/// any row is a hole.
void Ingest::finish_record(const Record& record) {
  const RowCursor next{record.offset + 1, 0};
  if (open_.any_good_row) unaccounted_bytes_ += static_cast<std::uint32_t>(record.value.size());
  if (open_.newest_amendable) {
    parts_.rows.amend_newest(next, std::exchange(unaccounted_bytes_, 0));
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

/// Where rows may be truncated they are read in bursts, and most are not decoded: there it is what the log
/// grows by that counts, a record as a row. Of that a second is kept.
void Ingest::follow_growth(TimePoint now) {
  std::int64_t end = 0;
  std::size_t known = 0;
  for (const stream::PartitionState& partition : parts_.source.partitions()) {
    if (partition.high_watermark < 0) continue;  // not known yet
    end += partition.high_watermark;
    ++known;
  }
  if (std::exchange(growing_, known) != known) growth_ = stream::GrowthEstimate();
  growth_.reached(end, now);
  const auto of_stream = static_cast<std::size_t>(seconds_kept * growth_.per_second(now));
  keep_ = std::min(std::max(config_.keep_least, of_stream), parts_.rows.capacity());
}

void Ingest::publish_status(TimePoint now) {
  const bool persists = config_.retention == Retention::persist;
  const double rate = persists ? rate_.rows_per_second(now) : growth_.per_second(now);
  parts_.gauge.rows_per_second.store(rate, std::memory_order_relaxed);
  parts_.status.stream_rate = rate;
  parts_.status.rows_waiting = parts_.rows.waiting();
  parts_.status.ingest_beat_ns = now.time_since_epoch().count();
  watch_.look(parts_.source, now);
  health_->look(now);
}

}  // namespace rivulet::runtime
