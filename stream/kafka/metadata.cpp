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

Result<Metadata> ask(rd_kafka_s* client, bool all, rd_kafka_topic_t* one, Duration timeout) {
  const rd_kafka_metadata_t* answer = nullptr;
  const auto code = rd_kafka_metadata(client, all ? 1 : 0, one, &answer, to_ms(timeout));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return Error{ErrorCode::unavailable, words_of(code)};
  return Metadata(answer);
}

/// What a broker that has answered is known by.
bool knows_cluster(rd_kafka_s* client) {
  char* id = rd_kafka_clusterid(client, 0);
  if (id == nullptr) return false;
  rd_kafka_mem_free(client, id);
  return true;
}

/// Brokers make a topic that they are asked about, if they are set to and the client lets them. A producer
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

Result<Metadata> ask_about_all_topics(rd_kafka_s* client, Duration timeout) {
  return ask(client, true, nullptr, timeout);
}

Result<Metadata> ask_about_brokers(rd_kafka_s* client, Duration timeout) {
  return ask(client, false, nullptr, timeout);
}

Result<std::vector<Metadata>> ask_about_topics(rd_kafka_s* client, std::span<const std::string> topics,
                                               Duration timeout) {
  const RealClock clock;
  const TimePoint end = clock.now() + timeout;
  const auto left = [&] { return std::max<Duration>(end - clock.now(), std::chrono::milliseconds(1)); };
  std::vector<Metadata> answers;
  const auto keep = [&](Result<Metadata> answer) {
    if (answer) answers.push_back(std::move(answer).value());
    return answer ? ok() : Status(answer.error());
  };
  bool by_name = !makes_topics(client);
  if (by_name && !knows_cluster(client))
    if (const auto brokers = ask_about_brokers(client, left()); !brokers) return brokers.error();
  by_name = by_name && knows_cluster(client) && !is_embedded(client);
  if (!by_name)
    if (auto kept = keep(ask_about_all_topics(client, left())); !kept) return kept.error();
  for (std::size_t i = 0; by_name && i < topics.size(); ++i) {
    const Topic topic(rd_kafka_topic_new(client, topics[i].c_str(), nullptr));
    if (!topic) return Error{ErrorCode::unavailable, words_of(rd_kafka_last_error())};
    if (auto kept = keep(ask(client, false, topic.get(), left())); !kept) return kept.error();
  }
  return answers;
}

}  // namespace rivulet::stream::kafka
