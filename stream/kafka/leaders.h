#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// The broker that serves a partition, at its advertised address: clients connect there, regardless of
/// bootstrap.servers.
struct Leader {
  std::int32_t broker = -1;  ///< -1: no leader at the moment
  std::string address = {};  ///< HOST:PORT
};

/// Leaders of the partitions 0, 1, ... of a topic.
using Leaders = std::vector<Leader>;

/// Returns the leaders of those topics that exist. Blocks up to `timeout`. Errors: unavailable (no answer).
Result<std::map<std::string, Leaders>> leaders_of(rd_kafka_s* client, std::span<const std::string> topics,
                                                  Duration timeout);

/// "topic "mnist", partition 3"
std::string name_of(const TopicPartition& partition);

struct Question {
  std::size_t slot = 0;  ///< chosen by the caller
  TopicPartition partition = {};
};

/// The cluster's answer for one partition, or how far the query got.
struct Finding {
  enum class Kind : std::uint8_t {
    marks,         ///< the leader has answered
    silent,        ///< the leader does not answer
    leaderless,    ///< no leader at the moment
    no_partition,  ///< the topic has fewer partitions
    no_topic,
    no_broker,  ///< no broker has listed the topics
  };
  std::size_t slot = 0;
  Kind kind = Kind::no_broker;
  Watermarks marks = {};
  Leader leader = {};
  int partitions = 0;      ///< number of partitions of the topic
  std::string words = {};  ///< librdkafka's message about a failure
};

/// Queries the leaders of these partitions for their watermarks. Each is queried on its own thread, so that
/// an unreachable broker does not delay the others. `found` is called once per question, by one thread at a
/// time, as soon as its leader has answered. Blocks up to `patience` for the list of topics, and again for
/// every 16 leaders; checks `stop` in between.
void survey(rd_kafka_s* client, std::span<const Question> questions, Duration patience,
            const std::atomic<bool>& stop, const std::function<void(Finding)>& found);

/// Why a partition cannot be read: 'topic "mnist", partition 3: no leader answers: broker 2 advertises
/// kafka-2:9092 and does not answer there (...)'. `words`: librdkafka's message about that broker, if any.
/// `brokers`: the addresses that were queried.
std::string why_unread(const TopicPartition& partition, const Finding& finding, std::string words,
                       const std::string& brokers);

/// Last error that the client has reported for each broker, by address; at most 64 brokers.
class BrokerWords {
 public:
  /// Parses a client error: "sasl_ssl://kafka-2:9092/2: Connection refused".
  void take(std::string_view words);
  /// Discards the last error of a broker that has answered.
  void forget(const std::string& address) { words_.erase(address); }
  /// "Connection refused"; empty if there is none.
  [[nodiscard]] std::string about(const std::string& address) const;

 private:
  static constexpr std::size_t most = 64;
  std::map<std::string, std::string> words_;
};

}  // namespace rivulet::stream::kafka
