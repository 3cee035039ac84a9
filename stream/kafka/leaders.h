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

/// The broker that has a partition's records, at the address that the cluster advertises: clients connect to
/// that one, whatever bootstrap.servers says.
struct Leader {
  std::int32_t broker = -1;  ///< -1: none at the moment
  std::string address = {};  ///< HOST:PORT
};

/// The leaders of the partitions 0, 1, ... of a topic.
using Leaders = std::vector<Leader>;

/// Of the named topics, those that are there. Blocks up to `timeout`. Errors: unavailable (no answer).
Result<std::map<std::string, Leaders>> leaders_of(rd_kafka_s* client, std::span<const std::string> topics,
                                                  Duration timeout);

/// "topic "mnist", partition 3"
std::string name_of(const TopicPartition& partition);

struct Question {
  std::size_t slot = 0;  ///< the caller's own number
  TopicPartition partition = {};
};

/// What the cluster has of one partition, or how far the question came.
struct Finding {
  enum class Kind : std::uint8_t {
    marks,         ///< its leader has answered
    silent,        ///< it has a leader, and that does not answer
    leaderless,    ///< nobody leads it at the moment
    no_partition,  ///< the topic has fewer
    no_topic,
    no_broker,  ///< no broker has listed the topics
  };
  std::size_t slot = 0;
  Kind kind = Kind::no_broker;
  Watermarks marks = {};
  Leader leader = {};
  int partitions = 0;      ///< of the topic
  std::string words = {};  ///< the client's, of what failed
};

/// Asks the leaders of these partitions for their watermarks, each on a thread of its own, so that a broker
/// that cannot be reached delays nobody else. `found` is called once for each question, by one thread at a
/// time, as soon as its leader has answered. Blocks up to `patience` for the list of topics, and again for
/// every 16 leaders; `stop` ends it in between.
void survey(rd_kafka_s* client, std::span<const Question> questions, Duration patience,
            const std::atomic<bool>& stop, const std::function<void(Finding)>& found);

/// Why a partition cannot be read: 'topic "mnist", partition 3: no leader answers: broker 2 advertises
/// kafka-2:9092 and does not answer there (...)'. `words`: of the client about that broker, if there are any.
/// `brokers`: where the cluster was asked.
std::string why_unread(const TopicPartition& partition, const Finding& finding, std::string words,
                       const std::string& brokers);

/// What the client has reported of each broker last, by address; of 64 brokers.
class BrokerWords {
 public:
  /// As the client's errors are worded: "sasl_ssl://kafka-2:9092/2: Connection refused".
  void take(std::string_view words);
  /// The broker has answered: what was reported before does not count any more.
  void forget(const std::string& address) { words_.erase(address); }
  /// "Connection refused"; empty: nothing.
  [[nodiscard]] std::string about(const std::string& address) const;

 private:
  static constexpr std::size_t most = 64;
  std::map<std::string, std::string> words_;
};

}  // namespace rivulet::stream::kafka
