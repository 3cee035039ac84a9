#include "stream/kafka/leaders.h"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "stream/kafka/metadata.h"

namespace rivulet::stream::kafka {
namespace {

constexpr std::size_t leaders_at_once = 16;

Leaders leaders_in(const rd_kafka_metadata_topic& topic, const std::map<std::int32_t, std::string>& brokers) {
  Leaders leaders(static_cast<std::size_t>(topic.partition_cnt));
  for (int i = 0; i < topic.partition_cnt; ++i) {
    const auto& partition = topic.partitions[i];
    const auto broker = brokers.find(partition.leader);
    if (broker != brokers.end() && partition.id >= 0 && partition.id < topic.partition_cnt)
      leaders[static_cast<std::size_t>(partition.id)] = {broker->first, broker->second};
  }
  return leaders;
}

/// Evaluates the list of topics; returns `silent` for a partition whose leader must be queried.
Finding look_up(const Question& question, const Result<std::map<std::string, Leaders>>& known) {
  using Kind = Finding::Kind;
  if (!known) return {.slot = question.slot, .kind = Kind::no_broker, .words = known.error().message};
  const auto topic = known.value().find(question.partition.topic);
  if (topic == known.value().end()) return {.slot = question.slot, .kind = Kind::no_topic};
  const Leaders& leaders = topic->second;
  const std::int32_t number = question.partition.id.partition;
  const auto count = static_cast<std::int32_t>(leaders.size());
  if (number < 0 || number >= count)
    return {.slot = question.slot, .kind = Kind::no_partition, .partitions = count};
  const Leader& leader = leaders[static_cast<std::size_t>(number)];
  return {.slot = question.slot,
          .kind = leader.broker < 0 ? Kind::leaderless : Kind::silent,
          .leader = leader,
          .partitions = count};
}

/// The partitions that one broker leads, with its answers.
class OneLeader {
 public:
  explicit OneLeader(rd_kafka_s* client) : client_(client) {}
  void add(const TopicPartition& partition, Finding finding) {
    partitions_.push_back(partition);
    findings_.push_back(std::move(finding));
  }
  /// Queries all partitions together. If that fails, queries each alone: only one may be rejected.
  void query(Duration patience) {
    const RealClock clock;
    const TimePoint end = clock.now() + patience;
    if (query_for(0, findings_.size(), patience)) return;
    for (std::size_t i = 0; findings_.size() > 1 && i < findings_.size() && clock.now() < end; ++i)
      query_for(i, 1, end - clock.now());
  }
  std::vector<Finding>& findings() { return findings_; }

 private:
  bool query_for(std::size_t first, std::size_t count, Duration patience) {
    const auto marks = query_watermarks(client_, std::span(partitions_).subspan(first, count), patience);
    for (std::size_t i = 0; i < count; ++i) {
      Finding& finding = findings_[first + i];
      finding.kind = marks ? Finding::Kind::marks : Finding::Kind::silent;
      if (marks)
        finding.marks = marks.value()[i];
      else
        finding.words = marks.error().message;
    }
    return bool(marks);
  }

  rd_kafka_s* client_;
  std::vector<TopicPartition> partitions_;
  std::vector<Finding> findings_;
};

/// Queries each leader on its own thread, or sequentially if no threads are available.
void query_all(std::span<OneLeader> leaders, Duration patience, const std::function<void(Finding)>& found) {
  std::vector<std::thread> threads;
  std::mutex one_at_a_time;
  for (OneLeader& leader : leaders) {
    const auto ask = [&] {
      leader.query(patience);
      const std::scoped_lock lock(one_at_a_time);
      for (auto& finding : leader.findings()) found(std::move(finding));
    };
    try {
      threads.emplace_back(ask);
    } catch (const std::system_error&) {
      ask();
    }
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace

std::string name_of(const TopicPartition& partition) {
  return fmt::format("topic \"{}\", partition {}", partition.topic, partition.id.partition);
}

Result<std::map<std::string, Leaders>> leaders_of(rd_kafka_s* client, std::span<const std::string> topics,
                                                  Duration timeout) {
  const auto answer = query_topics(client, topics, timeout);
  if (!answer) return answer.error();
  const Metadata& all = answer.value();
  std::map<std::int32_t, std::string> brokers;
  for (const auto& broker : std::span(all->brokers, static_cast<std::size_t>(all->broker_cnt)))
    brokers[broker.id] = fmt::format("{}:{}", broker.host, broker.port);
  std::map<std::string, Leaders> found;
  for (const auto& topic : std::span(all->topics, static_cast<std::size_t>(all->topic_cnt)))
    if (topic.partition_cnt > 0 && std::ranges::find(topics, topic.topic) != topics.end())
      found[topic.topic] = leaders_in(topic, brokers);
  return found;
}

void survey(rd_kafka_s* client, std::span<const Question> questions, Duration patience,
            const std::atomic<bool>& stop, const std::function<void(Finding)>& found) {
  std::set<std::string> names;
  for (const auto& question : questions) names.insert(question.partition.topic);
  const auto known = leaders_of(client, std::vector<std::string>(names.begin(), names.end()), patience);
  std::map<std::int32_t, std::size_t> places;
  std::vector<OneLeader> leaders;
  for (const auto& question : questions) {
    Finding finding = look_up(question, known);
    if (finding.kind != Finding::Kind::silent) {
      found(std::move(finding));
      continue;
    }
    const auto [place, added] = places.try_emplace(finding.leader.broker, leaders.size());
    if (added) leaders.emplace_back(client);
    leaders[place->second].add(question.partition, std::move(finding));
  }
  for (std::size_t first = 0; first < leaders.size() && !stop; first += leaders_at_once)
    query_all(std::span(leaders).subspan(first, std::min(leaders_at_once, leaders.size() - first)), patience,
              found);
}

std::string why_unread(const TopicPartition& partition, const Finding& finding, std::string words,
                       const std::string& brokers) {
  using Kind = Finding::Kind;
  if (words.empty()) words = finding.words;
  switch (finding.kind) {
    case Kind::marks: return {};
    case Kind::silent:
      return fmt::format(
          "{}: no leader answers: broker {} advertises the address {} and does not answer there ({})",
          name_of(partition), finding.leader.broker, finding.leader.address, words);
    case Kind::leaderless:
      return name_of(partition) + ": no leader answers: the partition has none at the moment";
    case Kind::no_partition:
      return fmt::format("{} does not exist: the topic has {} partition{}, 0 to {}, on {}",
                         name_of(partition), finding.partitions, finding.partitions == 1 ? "" : "s",
                         finding.partitions - 1, brokers);
    case Kind::no_topic: return fmt::format("topic \"{}\" does not exist on {}", partition.topic, brokers);
    case Kind::no_broker: break;
  }
  return fmt::format("{}: no broker of {} answers ({})", name_of(partition), brokers, words);
}

void BrokerWords::take(std::string_view words) {
  const auto colon = words.find(": ");
  if (colon == std::string_view::npos) return;
  std::string_view broker = words.substr(0, colon);
  if (const auto protocol = broker.find("://"); protocol != std::string_view::npos)
    broker.remove_prefix(protocol + 3);
  const auto slash = broker.find('/');
  if (slash == std::string_view::npos) return;
  const std::string address(broker.substr(0, slash));
  if (words_.size() < most || words_.contains(address))
    words_[address] = std::string(words.substr(colon + 2, 300));
}

std::string BrokerWords::about(const std::string& address) const {
  const auto found = words_.find(address);
  return found == words_.end() ? std::string() : found->second;
}

}  // namespace rivulet::stream::kafka
