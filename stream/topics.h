#pragma once
#include <string>

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

}  // namespace rivulet::stream
