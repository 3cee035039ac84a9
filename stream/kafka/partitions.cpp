#include "stream/kafka/partitions.h"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <charconv>

#include "stream/kafka/leaders.h"

namespace rivulet::stream::kafka {
namespace {

/// A leader answers a fetch within fetch.wait.max.ms. The time for transmission and queueing is a guess: an
/// unnecessary query costs little.
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
      paused_gauge_(metrics.gauge("kafka_paused_partitions")) {}

Partition* Partitions::find(const PartitionId& id) noexcept {
  const auto found = all_.find(id);
  return found != all_.end() ? &found->second : nullptr;
}

Partition* Partitions::find(const rd_kafka_message_s& message) noexcept {
  if (message.rkt == nullptr) return nullptr;
  const char* topic = rd_kafka_topic_name(message.rkt);
  const auto found = std::ranges::find_if(
      all_, [&](const auto& one) { return one.second.is_named(topic, message.partition); });
  return found != all_.end() ? &found->second : nullptr;
}

Partition* Partitions::find_number(std::size_t number) noexcept {
  const auto found =
      std::ranges::find_if(all_, [&](const auto& one) { return one.second.number() == number; });
  return found != all_.end() ? &found->second : nullptr;
}

Status Partitions::check(const Assignment& assignment) const {
  for (const auto& [id, cursor] : assignment.cursors) {
    if (id.topic >= config_.topics.size())
      return Error{ErrorCode::unavailable,
                   fmt::format("partition {}:{} belongs to a topic that this source does not read", id.topic,
                               id.partition)};
    if (cursor && cursor->offset < 0)
      return Error{
          ErrorCode::unavailable,
          fmt::format("{} has no offset {}", name_of({config_.topics[id.topic], id}), cursor->offset)};
  }
  return ok();
}

void Partitions::keep_only(const Assignment& assignment) {
  for (auto at = all_.begin(); at != all_.end();) {
    if (assignment.cursors.contains(at->first)) {
      ++at;
      continue;
    }
    at->second.give_up();
    at = all_.erase(at);
  }
  count_assigned();
}

Partition& Partitions::gain(const PartitionId& id, std::optional<std::int64_t> start) {
  const auto [at, is_new] =
      all_.try_emplace(id, gained_, TopicPartition{config_.topics[id.topic], id}, start, metrics_);
  if (is_new) {
    ++gained_;
    count_assigned();
  }
  return at->second;
}

void Partitions::count_assigned() {
  std::map<std::string, double> assigned;
  for (const auto& topic : config_.topics) assigned[topic] = 0;
  for (const auto& [id, partition] : all_) assigned[partition.name().topic] += 1;
  for (const auto& [topic, count] : assigned)
    metrics_.gauge("kafka_assigned_partitions", {{"topic", topic}}).set(count);
}

void Partitions::doubt(std::span<const Statistics::Silent> silent) {
  for (auto& [id, partition] : all_)
    partition.doubt(std::ranges::any_of(silent, [&, &p = partition](const Statistics::Silent& one) {
      return p.is_named(one.topic, one.partition) && one.seconds > to_seconds(silence_most_);
    }));
}

void Partitions::set_blocked(std::span<const Statistics::Blocked> blocked) {
  for (auto& [id, partition] : all_) {
    const auto found = std::ranges::find_if(blocked, [&p = partition](const Statistics::Blocked& one) {
      return p.is_named(one.topic, one.partition);
    });
    partition.set_blocked(found != blocked.end() ? found->from : -1);
  }
}

void Partitions::set_paused(bool paused) {
  for (auto& [id, partition] : all_) partition.set_paused(paused);
  paused_gauge_.set(paused ? static_cast<double>(all_.size()) : 0);
}

void Partitions::committed(std::string_view topic, std::int32_t partition, std::int64_t offset) {
  for (auto& [id, one] : all_)
    if (one.is_named(topic, partition)) one.committed(offset);
}

bool Partitions::refresh(rd_kafka_s* client) {
  bool grown = false;
  for (auto& [id, partition] : all_) grown = partition.refresh(client) || grown;
  return grown;
}

std::vector<Gap> Partitions::take_gaps() {
  std::vector<Gap> gaps;
  for (auto& [id, partition] : all_) partition.take_gaps(gaps);
  return gaps;
}

void Partitions::show() {
  states_.resize(all_.size());
  auto to = states_.begin();
  for (const auto& [id, partition] : all_) *to++ = partition.state();
}

}  // namespace rivulet::stream::kafka
