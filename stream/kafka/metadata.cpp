#include "stream/kafka/metadata.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string_view>

#include "core/clock.h"
#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {
namespace {

struct DestroyTopic {
  void operator()(rd_kafka_topic_t* topic) const noexcept { rd_kafka_topic_destroy(topic); }
};
using Topic = std::unique_ptr<rd_kafka_topic_t, DestroyTopic>;

Result<Metadata> query(rd_kafka_s* client, bool all, Duration timeout) {
  const rd_kafka_metadata_t* answer = nullptr;
  const auto code = rd_kafka_metadata(client, all ? 1 : 0, nullptr, &answer, to_ms(timeout));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return Error{ErrorCode::unavailable, words_of(code)};
  return Metadata(answer);
}

/// Whether a broker has answered. A client queries its cluster when it connects, and any request makes it
/// connect immediately, even one with timeout 0. Waits in short intervals, because librdkafka's own wait
/// wakes up only on topic changes.
bool knows_cluster(rd_kafka_s* client, const Clock& clock, TimePoint end) {
  constexpr int look_every_ms = 20;
  char* id = rd_kafka_clusterid(client, 0);
  if (id == nullptr) static_cast<void>(query(client, true, Duration(0)));
  while (id == nullptr && clock.now() < end) id = rd_kafka_clusterid(client, look_every_ms);
  if (id == nullptr) return false;
  rd_kafka_mem_free(client, id);
  return true;
}

/// Brokers with automatic topic creation create any requested topic, if the client permits it. A producer
/// always does.
bool makes_topics(rd_kafka_s* client) {
  if (rd_kafka_type(client) != RD_KAFKA_CONSUMER) return true;
  std::array<char, 16> value{};
  std::size_t size = value.size();
  return rd_kafka_conf_get(rd_kafka_conf(client), "allow.auto.create.topics", value.data(), &size) !=
             RD_KAFKA_CONF_OK ||
         std::string_view(value.data()) != "false";
}

}  // namespace

void DestroyMetadata::operator()(const struct rd_kafka_metadata* metadata) const noexcept {
  rd_kafka_metadata_destroy(metadata);
}

Result<Metadata> query_all_topics(rd_kafka_s* client, Duration timeout) {
  return query(client, true, timeout);
}

Result<Metadata> query_topics(rd_kafka_s* client, std::span<const std::string> topics, Duration timeout) {
  const RealClock clock;
  const TimePoint end = clock.now() + timeout;
  const auto left = [&] { return std::max<Duration>(end - clock.now(), std::chrono::milliseconds(1)); };
  if (makes_topics(client) || !knows_cluster(client, clock, end) || is_embedded(client))
    return query_all_topics(client, left());
  // librdkafka requests the topics that the client has objects for, or all topics if it has none.
  std::vector<Topic> ours;
  for (const std::string& topic : topics)
    ours.emplace_back(rd_kafka_topic_new(client, topic.c_str(), nullptr));
  return query(client, false, left());
}

}  // namespace rivulet::stream::kafka
