#include "stream/kafka/refill.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>

namespace rivulet::stream::kafka {
namespace {

constexpr int version_with_setting = 0x020200ff;
/// A queue of fewer records than this is that of a reader who keeps up, or of records so large that the round
/// trip is nothing beside them.
constexpr std::size_t worth_asking = 16;
/// The question has been sent by then, and that is enough.
constexpr Duration patience = std::chrono::milliseconds(20);
/// An answer may come before there was room.
constexpr Duration starving_longest = std::chrono::milliseconds(100);
constexpr Default setting[] = {{"fetch.queue.backoff.ms", "5"}};

}  // namespace

void Refill::Destroy::operator()(rd_kafka_queue_s* queue) const noexcept {
  rd_kafka_queue_destroy(queue);
}

Refill::Refill(rd_kafka_s* client) : client_(client), queue_(rd_kafka_queue_get_consumer(client)) {}

std::span<const Default> Refill::defaults() noexcept {
  if (rd_kafka_version() < version_with_setting) return {};
  return setting;
}

void Refill::look(const Partitions& partitions, TimePoint now) {
  if (rd_kafka_version() >= version_with_setting || queue_ == nullptr) return;
  const std::size_t waiting = rd_kafka_queue_length(queue_.get());
  most_ = std::max(most_, waiting);
  const bool fell = most_ >= worth_asking && waiting <= most_ / 2;
  const bool starves = waiting == 0 && now - asked_ >= starving_longest;
  if (!fell && !starves) return;
  most_ = waiting;
  asked_ = now;
  ask_leaders(partitions);
}

/// Only where more is known to be: a reader at the end of its streams has nothing to hurry.
void Refill::ask_leaders(const Partitions& partitions) {
  for (const auto& [id, partition] : partitions.all()) {
    const PartitionState& state = partition.state();
    if (!partition.is_read() || state.next_offset >= state.high_watermark) continue;
    if (partition.is_doubtful()) continue;  // asked elsewhere, by somebody who may wait
    (void)ask_leader(client_, partition.name().topic, id.partition, patience);
  }
}

}  // namespace rivulet::stream::kafka
