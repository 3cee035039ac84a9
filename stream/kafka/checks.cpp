#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "core/clock.h"
#include "core/nearest.h"
#include "stream/kafka/client.h"
#include "stream/kafka/leaders.h"
#include "stream/kafka/metadata.h"
#include "stream/open.h"
#include "stream/rights.h"

namespace rivulet::stream {
namespace {

struct KeepWords final : kafka::Listener {
  explicit KeepWords(kafka::BrokerWords& words) : words_(words) {}
  void client_error(int, std::string_view words) noexcept override { words_.take(words); }

 private:
  kafka::BrokerWords& words_;
};

/// Keeps the reason why a broker rejects this client: a wrong password, an unknown certificate.
struct KeepRefusal final : kafka::Listener {
  void client_error(int code, std::string_view words) noexcept override {
    const bool refusal = code == RD_KAFKA_RESP_ERR__AUTHENTICATION || code == RD_KAFKA_RESP_ERR__SSL;
    if (refusal && said.empty()) said = " (" + std::string(words.substr(0, 300)) + ")";
  }
  std::string said;
};

/// Finds errors that appear only when a client is created: missing files, mechanisms that are not compiled
/// in, conflicting settings. Omits the brokers, so that nothing connects.
std::string check_together(const Properties& properties) {
  std::array<char, 512> words{};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [name, value] : properties)
    if (name != "bootstrap.servers" && name != "metadata.broker.list")
      rd_kafka_conf_set(conf, name.c_str(), value.c_str(), words.data(), words.size());
  rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
  rd_kafka_t* handle = rd_kafka_new(RD_KAFKA_CONSUMER, conf, words.data(), words.size());
  if (handle == nullptr) {
    rd_kafka_conf_destroy(conf);
    return words.data();
  }
  rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
  return {};
}

/// Whether the user lacks permission to see the topic: brokers then report it as missing.
bool may_not_see(rd_kafka_t* client, const std::string& topic) {
  const auto answer = kafka::query_topics(client, std::span(&topic, 1), std::chrono::seconds(1));
  if (!answer) return false;
  const std::span topics(answer.value()->topics, static_cast<std::size_t>(answer.value()->topic_cnt));
  return std::ranges::any_of(topics, [&](const rd_kafka_metadata_topic& one) {
    return topic == one.topic && one.err == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
  });
}

}  // namespace

std::vector<std::string> check_kafka_properties(const Properties& properties) {
  std::vector<std::string> wrong;
  std::array<char, 512> words{};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  for (const auto& [name, value] : properties)
    if (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), words.data(), words.size()) != RD_KAFKA_CONF_OK)
      wrong.push_back(name + ": " + words.data());
  rd_kafka_conf_destroy(conf);
  if (!wrong.empty()) return wrong;
  if (auto together = check_together(properties); !together.empty()) wrong.push_back(std::move(together));
  return wrong;
}

std::string kafka_client_version() {
  return rd_kafka_version_str();
}

Result<std::optional<int>> find_topic(const Properties& properties, const std::string& topic,
                                      Duration deadline) {
  KeepRefusal listener;
  auto client = kafka::Client::open(kafka::ClientKind::consumer, properties, {}, listener);
  if (!client) return client.error();
  rd_kafka_t* handle = client.value()->handle();
  const RealClock clock;
  const TimePoint end = clock.now() + deadline;
  std::string last = "no answer";
  do {
    const Duration left = std::max<Duration>(end - clock.now(), std::chrono::milliseconds(1));
    const auto count = kafka::partitions_of(handle, topic, std::min<Duration>(left, std::chrono::seconds(1)));
    if (count && !count.value() && may_not_see(handle, topic))
      return Error{ErrorCode::unavailable, "this user is not authorized to DESCRIBE the topic " + topic +
                                               " on " + kafka::brokers_of(properties) +
                                               ", or the topic does not exist"};
    if (count) return count.value();
    rd_kafka_poll(handle, 0);  // a consumer without a group receives its errors here
    last = count.error().message + listener.said;
  } while (clock.now() < end);
  return Error{ErrorCode::unavailable,
               "no broker answered at " + kafka::brokers_of(properties) + ": " + last};
}

Result<std::vector<std::string>> list_topics(const Properties& properties, Duration deadline) {
  KeepRefusal listener;
  auto client = kafka::Client::open(kafka::ClientKind::consumer, properties, {}, listener);
  if (!client) return client.error();
  return kafka::topics_of(client.value()->handle(), deadline);
}

std::vector<std::string> jobs_among(const std::vector<std::string>& topics) {
  constexpr std::string_view head = "rivulet.";
  constexpr std::string_view tail = ".control";
  std::vector<std::string> jobs;
  for (const std::string& topic : topics)
    if (topic.size() > head.size() + tail.size() && topic.starts_with(head) && topic.ends_with(tail))
      jobs.push_back(topic.substr(head.size(), topic.size() - head.size() - tail.size()));
  return jobs;
}

Result<int> partition_count(const Properties& properties, const std::string& topic, Duration deadline) {
  const auto found = find_topic(properties, topic, deadline);
  if (!found) return found.error();
  if (found.value()) return *found.value();
  const auto topics = list_topics(properties, deadline);
  const std::string meant = topics ? nearest(topic, topics.value()) : "";
  return Error{ErrorCode::unavailable, "topic \"" + topic + "\" does not exist on " +
                                           kafka::brokers_of(properties) +
                                           (meant.empty() ? "" : " - did you mean '" + meant + "'?")};
}

namespace {

/// Queries each partition, repeatedly, until all have answered or `deadline` has passed. Keeps the input
/// order.
Result<std::vector<kafka::Finding>> survey_until(const Properties& properties,
                                                 const std::vector<TopicPartition>& partitions,
                                                 kafka::BrokerWords& words, Duration deadline) {
  KeepWords listener(words);
  auto client = kafka::Client::open(kafka::ClientKind::consumer, properties, {}, listener);
  if (!client) return client.error();
  std::vector<kafka::Finding> findings(partitions.size());
  std::vector<kafka::Question> open;
  for (std::size_t i = 0; i < partitions.size(); ++i) open.push_back({i, partitions[i]});
  const RealClock clock;
  const TimePoint end = clock.now() + deadline;
  const std::atomic<bool> never{false};
  do {
    const Duration left = std::max<Duration>(end - clock.now(), std::chrono::milliseconds(1));
    survey(client.value()->handle(), open, std::min<Duration>(left, std::chrono::seconds(2)), never,
           [&](kafka::Finding found) { findings[found.slot] = std::move(found); });
    rd_kafka_poll(client.value()->handle(), 50);  // a consumer without a group receives its errors here
    std::erase_if(open, [&](const kafka::Question& question) {
      return findings[question.slot].kind == kafka::Finding::Kind::marks;
    });
  } while (!open.empty() && clock.now() < end);
  return findings;
}

/// One sentence per partition without an answer; empty if all answered.
std::string why_unread(const Properties& properties, const std::vector<TopicPartition>& partitions,
                       const std::vector<kafka::Finding>& findings, const kafka::BrokerWords& words) {
  std::string all;
  for (std::size_t i = 0; i < findings.size(); ++i)
    if (const auto why =
            kafka::why_unread(partitions[i], findings[i], words.about(findings[i].leader.address),
                              kafka::brokers_of(properties));
        !why.empty())
      all += (all.empty() ? "" : "; ") + why;
  return all;
}

}  // namespace

Result<std::vector<LogEnds>> log_ends(const Properties& properties,
                                      const std::vector<TopicPartition>& partitions, Duration deadline) {
  kafka::BrokerWords words;
  const auto findings = survey_until(properties, partitions, words, deadline);
  if (!findings) return findings.error();
  if (auto why = why_unread(properties, partitions, findings.value(), words); !why.empty())
    return Error{ErrorCode::unavailable, std::move(why)};
  std::vector<LogEnds> ends;
  ends.reserve(partitions.size());
  for (const auto& finding : findings.value()) ends.push_back({finding.marks.low, finding.marks.high});
  return ends;
}

Status try_leaders(const Properties& properties, const std::vector<TopicPartition>& partitions,
                   Duration deadline) {
  const auto ends = log_ends(properties, partitions, deadline);
  if (ends || ends.error().code != ErrorCode::unavailable) return ends ? ok() : Status(ends.error());
  return Error{ErrorCode::timed_out, ends.error().message};
}

}  // namespace rivulet::stream
