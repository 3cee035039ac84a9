#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "stream/open.h"

namespace rivulet::stream {

/// Makes a topic through the broker's Admin API, with the broker's own default of replicas. A topic that is
/// there already is fine. Waits for the broker until `deadline`.
/// Errors: invalid_config (a property, with librdkafka's words), unavailable (it refused: names why),
/// timed_out (no answer: the topic may be made or not).
Status create_topic(const Properties& properties, const std::string& topic, int partitions,
                    Duration deadline);

/// The same with settings of the topic, such as message.timestamp.type.
Status create_topic(const Properties& properties, const std::string& topic, int partitions, Duration deadline,
                    const Properties& settings);

/// What the broker has of one topic now.
struct TopicFacts {
  std::optional<int> partitions;  ///< none: there is no such topic, or this user may not see it
  std::vector<int> leaderless;    ///< partitions that no broker leads
};

/// Asks brokers about the same topics again and again, by one client that stays connected. Owned by one
/// thread. Asking makes no topic. Cost of an answer: some 300 bytes, and 50 for each partition.
class TopicLookup {
 public:
  TopicLookup() = default;
  TopicLookup(const TopicLookup&) = delete;
  TopicLookup& operator=(const TopicLookup&) = delete;
  virtual ~TopicLookup() = default;
  /// Of each topic, in order. Errors: invalid_config (a property, with librdkafka's words), unavailable (no
  /// answer within `deadline`).
  virtual Result<std::vector<TopicFacts>> ask(Duration deadline) = 0;
};

/// Connects when it is asked.
std::unique_ptr<TopicLookup> make_topic_lookup(const Properties& properties, std::vector<std::string> topics);

/// The hosts of all brokers, as the cluster advertises them: there devices on other machines find them,
/// whatever bootstrap.servers says here. Asks about `topic`, which need not be there, for an answer names the
/// brokers besides. Errors: invalid_config, unavailable (no answer within `deadline`).
Result<std::vector<std::string>> advertised_hosts(const Properties& properties, const std::string& topic,
                                                  Duration deadline);

}  // namespace rivulet::stream
