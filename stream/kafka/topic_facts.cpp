#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <memory>

#include "stream/kafka/client.h"
#include "stream/topics.h"

namespace rivulet::stream {
namespace {

using namespace kafka;

struct Silent final : Listener {
  void client_error(int, std::string_view) noexcept override {}
};

struct DestroyMetadata {
  void operator()(const rd_kafka_metadata_t* metadata) const { rd_kafka_metadata_destroy(metadata); }
};

TopicFacts facts_of(const rd_kafka_metadata_topic_t& topic) {
  TopicFacts facts;
  if (topic.partition_cnt == 0) return facts;
  facts.partitions = topic.partition_cnt;
  for (int i = 0; i < topic.partition_cnt; ++i)
    if (topic.partitions[i].leader < 0) facts.leaderless.push_back(topic.partitions[i].id);
  std::ranges::sort(facts.leaderless);
  return facts;
}

}  // namespace

// For the list of all topics: a question about one by name creates it on brokers that create topics by
// themselves.
Result<std::vector<TopicFacts>> topic_facts(const Properties& properties,
                                            const std::vector<std::string>& topics, Duration deadline) {
  static constexpr Default defaults[] = {{"allow.auto.create.topics", "false"}};
  Silent listener;
  auto client = Client::open(ClientKind::consumer, properties, defaults, listener);
  if (!client) return client.error();
  const rd_kafka_metadata_t* got = nullptr;
  const auto code = rd_kafka_metadata(client.value()->handle(), 1, nullptr, &got, to_ms(deadline));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return Error{ErrorCode::unavailable,
                 "no broker answered at " + brokers_of(properties) + ": " + words_of(code)};
  const std::unique_ptr<const rd_kafka_metadata_t, DestroyMetadata> metadata(got);
  std::vector<TopicFacts> facts(topics.size());
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    const auto at = std::ranges::find(topics, metadata->topics[i].topic);
    if (at != topics.end()) facts[at - topics.begin()] = facts_of(metadata->topics[i]);
  }
  return facts;
}

}  // namespace rivulet::stream
