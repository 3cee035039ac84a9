#pragma once
#include <span>
#include <string>

#include "core/record.h"

namespace rivulet::runtime {

/// The name behind PartitionId::topic; "#7" (no topic is called that) where the list has none.
inline std::string topic_of(const PartitionId& id, std::span<const std::string> topics) {
  return id.topic < topics.size() ? topics[id.topic] : "#" + std::to_string(id.topic);
}

/// "mnist:3".
inline std::string text_of(const PartitionId& id, std::span<const std::string> topics) {
  return topic_of(id, topics) + ":" + std::to_string(id.partition);
}

}  // namespace rivulet::runtime
