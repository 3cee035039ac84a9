#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "stream/open.h"

namespace rivulet::stream {

/// Creates a topic through the broker's Admin API, with the broker's default replication. An existing topic
/// is not an error. Waits for the broker until `deadline`. Errors: invalid_config (a property, with
/// librdkafka's message), unavailable (rejected, with the reason), timed_out (no answer: the topic may or may
/// not exist).
Status create_topic(const Properties& properties, const std::string& topic, int partitions,
                    Duration deadline);

/// As above, with topic settings such as message.timestamp.type.
Status create_topic(const Properties& properties, const std::string& topic, int partitions, Duration deadline,
                    const Properties& settings);

/// Current state of one topic at the broker.
struct TopicFacts {
  std::optional<int> partitions;  ///< nullopt: the topic does not exist, or is not visible to this user
  std::vector<int> leaderless;    ///< partitions without a leader
};

/// Queries brokers repeatedly about the same topics, with one client that stays connected. Owner: one thread.
/// Never creates a topic. Cost per answer: about 300 bytes, plus 50 per partition.
class TopicLookup {
 public:
  TopicLookup() = default;
  TopicLookup(const TopicLookup&) = delete;
  TopicLookup& operator=(const TopicLookup&) = delete;
  virtual ~TopicLookup() = default;
  /// Returns the facts of each topic, in order. Errors: invalid_config (a property, with librdkafka's
  /// message), unavailable (no answer within `deadline`).
  virtual Result<std::vector<TopicFacts>> query(Duration deadline) = 0;
};

/// Connects on the first query().
std::unique_ptr<TopicLookup> make_topic_lookup(const Properties& properties, std::vector<std::string> topics);

/// Returns the hosts of all brokers as advertised by the cluster: devices on other machines use these,
/// regardless of bootstrap.servers here. Queries metadata of `topic`, which need not exist, since the answer
/// lists all brokers. Errors: invalid_config, unavailable (no answer within `deadline`).
Result<std::vector<std::string>> advertised_hosts(const Properties& properties, const std::string& topic,
                                                  Duration deadline);

}  // namespace rivulet::stream
