#pragma once
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

/// Of each of these topics, in order, asked at once by a client that lives for this question. Asking makes
/// none of them. Errors: invalid_config, unavailable (no answer within `deadline`).
Result<std::vector<TopicFacts>> topic_facts(const Properties& properties,
                                            const std::vector<std::string>& topics, Duration deadline);

}  // namespace rivulet::stream
