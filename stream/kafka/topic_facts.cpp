#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "stream/kafka/client.h"
#include "stream/kafka/metadata.h"
#include "stream/topics.h"

namespace rivulet::stream {
namespace {

using namespace kafka;

TopicFacts facts_of(const rd_kafka_metadata_topic& topic) {
  TopicFacts facts;
  if (topic.partition_cnt == 0) return facts;
  facts.partitions = topic.partition_cnt;
  for (int i = 0; i < topic.partition_cnt; ++i)
    if (topic.partitions[i].leader < 0) facts.leaderless.push_back(topic.partitions[i].id);
  std::ranges::sort(facts.leaderless);
  return facts;
}

Error unanswered(const Properties& properties, const Error& why) {
  return {ErrorCode::unavailable, "no broker answered at " + brokers_of(properties) + ": " + why.message};
}

class KafkaTopicLookup final : public TopicLookup {
 public:
  KafkaTopicLookup(Properties properties, std::vector<std::string> topics)
      : properties_(std::move(properties)), topics_(std::move(topics)) {}
  Result<std::vector<TopicFacts>> query(Duration deadline) override {
    if (auto opened = open(); !opened) return opened.error();
    rd_kafka_poll(client_->handle(), 0);  // drains the client's error events
    const auto answer = query_topics(client_->handle(), topics_, deadline);
    if (!answer) return unanswered(properties_, answer.error());
    std::vector<TopicFacts> facts(topics_.size());
    for (const auto& topic :
         std::span(answer.value()->topics, static_cast<std::size_t>(answer.value()->topic_cnt)))
      if (const auto at = std::ranges::find(topics_, topic.topic); at != topics_.end())
        facts[static_cast<std::size_t>(at - topics_.begin())] = facts_of(topic);
    return facts;
  }

 private:
  Status open() {
    if (client_) return ok();
    auto client = Client::open(ClientKind::consumer, properties_, {}, nobody_listens_);
    if (!client) return client.error();
    client_ = std::move(client).value();
    return ok();
  }
  const Properties properties_;
  const std::vector<std::string> topics_;
  NobodyListens nobody_listens_;
  std::unique_ptr<Client> client_;
};

}  // namespace

std::unique_ptr<TopicLookup> make_topic_lookup(const Properties& properties,
                                               std::vector<std::string> topics) {
  return std::make_unique<KafkaTopicLookup>(properties, std::move(topics));
}

Result<std::vector<std::string>> advertised_hosts(const Properties& properties, const std::string& topic,
                                                  Duration deadline) {
  NobodyListens listener;
  const auto client = Client::open(ClientKind::consumer, properties, {}, listener);
  if (!client) return client.error();
  const auto answer = query_topics(client.value()->handle(), std::span(&topic, 1), deadline);
  if (!answer) return unanswered(properties, answer.error());
  std::vector<std::string> hosts;
  for (const auto& broker :
       std::span(answer.value()->brokers, static_cast<std::size_t>(answer.value()->broker_cnt)))
    hosts.emplace_back(broker.host);
  return hosts;
}

}  // namespace rivulet::stream
