#include "stream/kafka/partitions.h"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "stream/kafka/range.h"

namespace rivulet::stream::kafka {
namespace {

/// A leader answers a fetch after fetch.wait.max.ms at the latest. What its answer takes on the way, and what
/// waits before it, is a guess: being asked once too often costs one small question.
Duration silence_of(const Properties& properties) {
  std::int64_t wait_ms = 500;
  const std::string text = property(properties, "fetch.wait.max.ms");
  static_cast<void>(std::from_chars(text.data(), text.data() + text.size(), wait_ms));
  return std::chrono::milliseconds(wait_ms + 1000);
}

}  // namespace

Partitions::Partitions(const KafkaSourceConfig& config, MetricsSink& metrics)
    : config_(config),
      silence_most_(silence_of(config.properties)),
      metrics_(metrics),
      paused_gauge_(metrics.gauge("kafka_paused_partitions")) {
  std::map<std::string, double> assigned;
  for (const auto& partition : config.partitions) {
    const auto number = std::to_string(partition.id.partition);
    const Labels both{{"topic", partition.topic}, {"partition", number}};
    states_.push_back({.id = partition.id});
    slots_.push_back({metrics.counter("kafka_records_consumed_total", {{"topic", partition.topic}}),
                      metrics.counter("kafka_consumed_bytes_total", {{"topic", partition.topic}}),
                      metrics.gauge("kafka_processed_lag_records", both),
                      metrics.gauge("kafka_stopped_partition", both),
                      metrics.counter("kafka_gap_records_total", both)});
    metrics.gauge("kafka_assigned_partitions", {{"topic", partition.topic}}).set(++assigned[partition.topic]);
  }
}

std::size_t Partitions::slot_of(const rd_kafka_message_s& message) const noexcept {
  const char* topic = rd_kafka_topic_name(message.rkt);
  std::size_t slot = 0;
  while (slot < size() && (states_[slot].id.partition != message.partition || name(slot).topic != topic))
    ++slot;
  return slot;
}

Result<std::vector<std::size_t>> Partitions::slots_of(std::span<const NextOffset> positions) const {
  std::vector<std::size_t> slots;
  for (const auto& position : positions) {
    const auto found = std::find_if(states_.begin(), states_.end(),
                                    [&](const auto& state) { return state.id == position.partition; });
    if (found == states_.end())
      return Error{ErrorCode::unavailable,
                   fmt::format("partition {}:{} is not one of this source", position.partition.topic,
                               position.partition.partition)};
    slots.push_back(static_cast<std::size_t>(found - states_.begin()));
  }
  return slots;
}

bool Partitions::is_read(std::size_t slot) const {
  return states_[slot].stopped.empty() && !slots_[slot].unsettled;
}

void Partitions::miss(std::size_t slot, std::string why, TimePoint now, Duration grace) {
  auto& since = slots_[slot].missed_since;
  if (!since) since = now;
  if (now - *since >= grace) states_[slot].unreached = std::move(why);
}

void Partitions::reached(std::size_t slot) {
  slots_[slot].missed_since.reset();
  slots_[slot].doubted = false;
  states_[slot].unreached.clear();
}

void Partitions::doubt(std::span<const Statistics::Silent> silent) {
  for (std::size_t slot = 0; slot < size(); ++slot)
    slots_[slot].doubted = std::ranges::any_of(silent, [&](const Statistics::Silent& one) {
      return one.partition == states_[slot].id.partition && one.topic == name(slot).topic &&
             one.seconds > to_seconds(silence_most_);
    });
}

bool Partitions::is_doubtful(std::size_t slot) const {
  return slots_[slot].doubted || !states_[slot].unreached.empty();
}

void Partitions::place(std::size_t slot, Watermarks marks) {
  PartitionState& state = states_[slot];
  slots_[slot].unsettled = false;
  state.low_watermark = marks.low;
  state.high_watermark = marks.high;
  switch (place_of(state.next_offset, marks)) {
    case Place::inside: return go_on(slot);
    case Place::cut:
      if (config_.count_gaps) return skip_to(slot, marks.low);
      return stop(slot, why_cut(name(slot), state.next_offset, marks));
    case Place::beyond: return stop(slot, why_beyond(name(slot), state.next_offset, marks));
  }
}

void Partitions::stop_other_log(std::size_t slot, std::int64_t anchor, Watermarks marks) {
  PartitionState& state = states_[slot];
  state.low_watermark = marks.low;
  state.high_watermark = marks.high;
  slots_[slot].unsettled = false;
  slots_[slot].other_log = true;
  stop(slot, why_other_log(name(slot), state.next_offset, anchor, marks));
}

void Partitions::skip_to(std::size_t slot, std::int64_t offset) {
  PartitionState& state = states_[slot];
  const std::int64_t from = std::exchange(state.next_offset, offset);
  const auto touching = std::find_if(gaps_.begin(), gaps_.end(), [&](const Gap& gap) {
    return gap.partition == state.id && gap.to == from;
  });
  if (touching != gaps_.end())
    touching->to = offset;
  else
    gaps_.push_back({state.id, from, offset});
  state.skipped += offset - from;
  slots_[slot].gap_records.add(static_cast<double>(offset - from));
  go_on(slot);
}

void Partitions::stop(std::size_t slot, std::string why) {
  states_[slot].stopped = std::move(why);
  slots_[slot].stopped.set(1);
}

void Partitions::go_on(std::size_t slot) {
  states_[slot].stopped.clear();
  slots_[slot].stopped.set(0);
}

void Partitions::move_to(std::size_t slot, std::int64_t offset) {
  states_[slot].next_offset = offset;
  std::erase_if(gaps_, [&](const Gap& gap) { return gap.partition == states_[slot].id; });
  if (!states_[slot].stopped.empty() && !slots_[slot].other_log) slots_[slot].unsettled = true;
}

void Partitions::passed(std::size_t slot, const rd_kafka_message_s& message) {
  PartitionState& state = states_[slot];
  state.next_offset = message.offset + 1;
  if (!state.unreached.empty()) reached(slot);
  // What was read is in the log, whatever the last look at its end found.
  state.high_watermark = std::max(state.high_watermark, state.next_offset);
  slots_[slot].records.add(1);
  slots_[slot].bytes.add(static_cast<double>(message.len));
}

void Partitions::set_paused(bool paused) {
  for (auto& state : states_) state.paused = paused;
  paused_gauge_.set(paused ? static_cast<double>(size()) : 0);
}

void Partitions::hold(std::span<const Statistics::Held> held) {
  for (std::size_t slot = 0; slot < size(); ++slot) {
    PartitionState& state = states_[slot];
    const auto found = std::ranges::find_if(held, [&](const Statistics::Held& one) {
      return one.partition == state.id.partition && one.topic == name(slot).topic;
    });
    state.held_from = found != held.end() && state.next_offset <= found->from ? found->from : -1;
  }
}

void Partitions::committed(std::string_view topic, std::int32_t partition, std::int64_t offset) {
  for (std::size_t slot = 0; slot < size(); ++slot) {
    if (name(slot).topic != topic || states_[slot].id.partition != partition) continue;
    slots_[slot].committed = offset;
    slots_[slot].committed_lag = &metrics_.gauge(
        "kafka_consumer_lag_records", {{"topic", topic}, {"partition", std::to_string(partition)}});
  }
}

bool Partitions::refresh(rd_kafka_s* client) {
  bool grown = false;
  for (std::size_t slot = 0; slot < size(); ++slot) {
    auto& state = states_[slot];
    if (state.stopped.empty()) {  // else as the broker had it then
      const auto marks = known_watermarks(client, name(slot).topic, state.id.partition);
      grown = grown || marks.high > state.high_watermark;
      state.low_watermark = std::max(state.low_watermark, marks.low);
      state.high_watermark = std::max({state.high_watermark, marks.high, state.next_offset});
      slots_[slot].lag.set(static_cast<double>(state.high_watermark - state.next_offset));
    }
    if (Gauge* lag = slots_[slot].committed_lag)
      lag->set(static_cast<double>(std::max<std::int64_t>(state.high_watermark - slots_[slot].committed, 0)));
  }
  return grown;
}

std::vector<Gap> Partitions::take_gaps() {
  return std::exchange(gaps_, {});
}

}  // namespace rivulet::stream::kafka
