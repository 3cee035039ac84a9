#include <fmt/format.h>

#include <set>

#include "core/nearest.h"
#include "runtime/cli/checks/checks.h"
#include "runtime/node/control_topic.h"
#include "runtime/node/plain_brokers.h"
#include "stream/open.h"
#include "stream/rights.h"

namespace rivulet::runtime::cli {
namespace {

constexpr Duration first_patience = std::chrono::seconds(10);  // until a broker has answered
/// A new Kafka has no coordinator yet, and a busy broker is slow to accept encrypted connections.
constexpr Duration patience = std::chrono::seconds(15);
constexpr const char* rights_hint =
    "if rights are missing, add them with kafka-acls.sh --add (docs/howto/secure.md)";

constexpr const char* address_hint =
    "bootstrap.servers is only the first contact; clients then connect to the address that each broker "
    "advertises: check advertised.listeners of the broker, DNS and firewalls";

/// Returns the hint for a request that was rejected or got no answer.
const char* hint_for(const Error& error) {
  return error.code == ErrorCode::timed_out ? address_hint : rights_hint;
}

std::string brokers_in(const Config& config) {
  for (const auto& [name, value] : config.source.kafka_properties)
    if (name == "bootstrap.servers" || name == "metadata.broker.list") return value;
  return "HOST:PORT";
}

std::string group_of(const Config& config) {
  return "rivulet." + config.job.name;
}

/// Returns the partitions of a topic that this device claims; all of them if it claims none.
std::vector<stream::TopicPartition> claimed_of(const Config& config, const std::string& topic, int count) {
  std::vector<stream::TopicPartition> partitions;
  for (const auto& [claimed, partition] : config.source.claims)
    if (claimed == topic) partitions.push_back({topic, {0, partition}});
  for (int p = 0; partitions.empty() && p < count; ++p) partitions.push_back({topic, {0, p}});
  return partitions;
}

/// Checks that the topic and its claimed partitions exist and the user may read and commit.
Check topic_check(const Config& config, const std::string& topic) {
  const auto& properties = config.source.kafka_properties;
  const std::string name = "topic " + topic;
  const auto found = stream::find_topic(properties, topic, first_patience);
  if (!found)
    return {name, CheckLevel::fail, found.error().message,
            "check that the broker runs and that this user has the right to DESCRIBE the topic"};
  if (!found.value())
    return {name, CheckLevel::fail, "does not exist on " + brokers_in(config),
            "check the name, or create it: kafka-topics.sh --create --topic " + topic +
                " --partitions N --bootstrap-server " + brokers_in(config) + ", one partition per device"};
  const int count = *found.value();
  for (const auto& [claimed, partition] : config.source.claims) {
    if (claimed == topic && partition >= count) {
      return {
          name, CheckLevel::fail,
          fmt::format("has partitions 0 to {}, but this device claims partition {}", count - 1, partition),
          "change source.partitions, or add partitions to the topic"};
    }
  }
  Status may = stream::try_leaders(properties, claimed_of(config, topic, count), patience);
  if (may) may = stream::try_reading(properties, topic, count, group_of(config), patience);
  if (!may) return {name, CheckLevel::fail, may.error().message, hint_for(may.error())};
  return {name, CheckLevel::ok, fmt::format("{} partition{}", count, count == 1 ? "" : "s"), ""};
}

/// Checks a missing control topic. The first device creates it if the user has the right.
Check absent_control_check(const Config& config, const std::string& topic) {
  const std::string how = "kafka-topics.sh --create --topic " + topic +
                          " --partitions 1 --config message.timestamp.type=LogAppendTime --config "
                          "retention.ms=-1 --bootstrap-server " +
                          brokers_in(config);
  if (const auto may = stream::try_creating(config.source.kafka_properties, topic, patience); !may)
    return {"topic " + topic, CheckLevel::fail, "does not exist yet, and " + may.error().message,
            may.error().code == ErrorCode::timed_out ? address_hint : how};
  const auto topics = stream::list_topics(config.source.kafka_properties, patience);
  const auto meant =
      topics ? nearest_but_number(config.job.name, stream::jobs_among(topics.value())) : std::string();
  if (!meant.empty())
    return {"topic " + topic, CheckLevel::warn,
            "does not exist yet, but the control topic of job '" + meant + "' exists",
            "check job.name: it must be equal on all devices of a job"};
  return {"topic " + topic, CheckLevel::ok, "does not exist yet; the first device creates it", ""};
}

/// Checks that the user may read and write one partition.
Check control_topic_check(const Config& config) {
  const auto& properties = config.source.kafka_properties;
  const auto topic = ControlTopic::name_of(config.job.name);
  const std::string name = "topic " + topic;
  const auto found = stream::find_topic(properties, topic, patience);
  if (!found) return {name, CheckLevel::fail, found.error().message, rights_hint};
  if (!found.value()) return absent_control_check(config, topic);
  if (*found.value() != 1)
    return {name, CheckLevel::fail, fmt::format("has {} partitions, exactly one is allowed", *found.value()),
            "choose a different job.name, or delete this topic"};
  Status may = stream::try_leaders(properties, {{topic, {0, 0}}}, patience);
  if (may) may = stream::try_reading(properties, topic, 1, group_of(config), patience);
  if (may) may = stream::try_writing(properties, topic, patience);
  if (!may) return {name, CheckLevel::fail, may.error().message, hint_for(may.error())};
  return {name, CheckLevel::ok, "1 partition", ""};
}

}  // namespace

std::vector<Check> broker_checks(const Config& config) {
  if (config.source.kafka_properties.empty()) return {};
  std::vector<Check> checks;
  if (const auto plain = plain_brokers(config.source.kafka_properties); !plain.empty())
    checks.push_back({"encryption", CheckLevel::warn, "none on connections to " + plain,
                      "set source.kafka.properties.security.protocol to sasl_ssl or ssl"});
  std::set<std::string> topics;
  for (const auto& [topic, partition] : config.source.claims) topics.insert(topic);
  if (config.source.type == "kafka") topics.insert(config.source.topics.begin(), config.source.topics.end());
  for (const auto& topic : topics) {
    checks.push_back(topic_check(config, topic));
    if (checks.back().level == CheckLevel::fail) return checks;  // others would wait for the same broker
  }
  checks.push_back(control_topic_check(config));
  return checks;
}

}  // namespace rivulet::runtime::cli
