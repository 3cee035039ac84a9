#include "stream/kafka/partition.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>

#include "stream/kafka/range.h"

namespace rivulet::stream::kafka {

Partition::Partition(std::size_t number, TopicPartition name, std::optional<std::int64_t> start,
                     MetricsSink& metrics)
    : number_(number),
      name_(std::move(name)),
      label_(std::to_string(name_.id.partition)),
      metrics_(metrics),
      meters_{metrics.counter("kafka_records_consumed_total", {{"topic", name_.topic}}),
              metrics.counter("kafka_consumed_bytes_total", {{"topic", name_.topic}}),
              metrics.gauge("kafka_processed_lag_records", {{"topic", name_.topic}, {"partition", label_}}),
              metrics.gauge("kafka_stopped_partition", {{"topic", name_.topic}, {"partition", label_}}),
              metrics.counter("kafka_gap_records_total", {{"topic", name_.topic}, {"partition", label_}})},
      state_{.id = name_.id},
      start_(start) {}

void Partition::give_up() {
  for (const char* gauge : {"kafka_processed_lag_records", "kafka_stopped_partition"})
    metrics_.remove(gauge, {{"topic", name_.topic}, {"partition", label_}});
  if (meters_.committed_lag != nullptr)
    metrics_.remove("kafka_consumer_lag_records", {{"topic", name_.topic}, {"partition", label_}});
}

void Partition::move_to(std::int64_t offset) {
  gaps_.clear();
  if (!is_placed()) {
    start_ = offset;
    return;
  }
  state_.next_offset = offset;
  if (!state_.stopped.empty() && !log.other) unresolved_ = true;
}

void Partition::resolve(Watermarks marks, std::int64_t begin, bool count_gaps) {
  if (!is_placed()) state_.next_offset = begin;
  unresolved_ = false;
  state_.low_watermark = marks.low;
  state_.high_watermark = marks.high;
  switch (place_of(state_.next_offset, marks)) {
    case Place::inside: return resume();
    case Place::cut:
      if (count_gaps) return skip_to(marks.low);
      return stop(why_cut(name_, state_.next_offset, marks));
    case Place::beyond: return stop(why_beyond(name_, state_.next_offset, marks));
  }
}

void Partition::stop_other_log(Watermarks marks) {
  state_.low_watermark = marks.low;
  state_.high_watermark = marks.high;
  unresolved_ = false;
  stop(why_other_log(name_, state_.next_offset, log.good ? log.good->offset : -1, marks));
}

void Partition::skip_to(std::int64_t offset) {
  const std::int64_t from = std::exchange(state_.next_offset, offset);
  if (!gaps_.empty() && gaps_.back().to == from)
    gaps_.back().to = offset;
  else
    gaps_.push_back({name_.id, from, offset});
  state_.skipped += offset - from;
  meters_.gap_records.add(static_cast<double>(offset - from));
  resume();
}

void Partition::stop(std::string why) {
  state_.stopped = std::move(why);
  meters_.stopped.set(1);
}

void Partition::resume() {
  state_.stopped.clear();
  meters_.stopped.set(0);
}

void Partition::passed(const rd_kafka_message_s& message) {
  newest_ = &message;
  state_.next_offset = message.offset + 1;
  if (!state_.unreached.empty()) reached();
  // Records that were read are in the log, even if the last query returned an earlier end.
  state_.high_watermark = std::max(state_.high_watermark, state_.next_offset);
  meters_.records.add(1);
  meters_.bytes.add(static_cast<double>(message.len));
}

void Partition::set_blocked(std::int64_t from) noexcept {
  state_.blocked_from = state_.next_offset <= from ? from : -1;
}

bool Partition::refresh(rd_kafka_s* client) {
  bool grown = false;
  if (state_.stopped.empty()) {  // a stopped partition keeps its last watermarks
    const auto marks = known_watermarks(client, name_.topic, name_.id.partition);
    grown = marks.high > state_.high_watermark;
    state_.low_watermark = std::max(state_.low_watermark, marks.low);
    state_.high_watermark = std::max({state_.high_watermark, marks.high, state_.next_offset});
    meters_.lag.set(static_cast<double>(state_.high_watermark - state_.next_offset));
  }
  if (meters_.committed_lag != nullptr)
    meters_.committed_lag->set(
        static_cast<double>(std::max<std::int64_t>(state_.high_watermark - committed_, 0)));
  return grown;
}

void Partition::take_gaps(std::vector<Gap>& out) {
  out.insert(out.end(), gaps_.begin(), gaps_.end());
  gaps_.clear();
}

void Partition::miss(std::string why, TimePoint now, Duration grace) {
  if (!missed_since_) missed_since_ = now;
  if (now - *missed_since_ >= grace) state_.unreached = std::move(why);
}

void Partition::reached() {
  missed_since_.reset();
  doubted_ = false;
  state_.unreached.clear();
}

void Partition::committed(std::int64_t offset) {
  committed_ = offset;
  if (meters_.committed_lag == nullptr)
    meters_.committed_lag =
        &metrics_.gauge("kafka_consumer_lag_records", {{"topic", name_.topic}, {"partition", label_}});
}

}  // namespace rivulet::stream::kafka
