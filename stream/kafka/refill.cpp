#include "stream/kafka/refill.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>

namespace rivulet::stream::kafka {
namespace {

constexpr int version_with_setting = 0x020200ff;
/// A shorter queue belongs to a reader that keeps up, or has records so large that the round trip is
/// negligible.
constexpr std::size_t query_worthwhile = 16;
/// Long enough to send the request; its answer is not needed.
constexpr Duration patience = std::chrono::milliseconds(20);
/// Repeats the request after this time: the answer may have come before the queue had space.
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
  const bool fell = most_ >= query_worthwhile && waiting <= most_ / 2;
  const bool starves = waiting == 0 && now - queried_ >= starving_longest;
  if (!fell && !starves) return;
  most_ = waiting;
  queried_ = now;
  query_leaders(partitions);
}

/// Skips partitions without further records: a reader at the end of its streams need not hurry.
void Refill::query_leaders(const Partitions& partitions) {
  for (const auto& [id, partition] : partitions.all()) {
    const PartitionState& state = partition.state();
    if (!partition.is_read() || state.next_offset >= state.high_watermark) continue;
    if (partition.is_doubtful()) continue;  // queried elsewhere, by a thread that may wait
    (void)query_leader(client_, partition.name().topic, id.partition, patience);
  }
}

}  // namespace rivulet::stream::kafka
