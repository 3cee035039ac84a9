#pragma once
#include <algorithm>
#include <charconv>
#include <span>
#include <string>
#include <vector>

#include "core/record.h"

namespace rivulet::runtime {

/// Returns the topic's name, or "#7" (not a valid topic name) if the index is out of range.
inline std::string topic_of(const PartitionId& id, std::span<const std::string> topics) {
  return id.topic < topics.size() ? topics[id.topic] : "#" + std::to_string(id.topic);
}

/// "mnist:3".
inline std::string text_of(const PartitionId& id, std::span<const std::string> topics) {
  return topic_of(id, topics) + ":" + std::to_string(id.partition);
}

/// Parses names such as "mnist:3" and returns sorted ids. Omits malformed names and unknown topics.
inline std::vector<PartitionId> partitions_of(std::span<const std::string> names,
                                              std::span<const std::string> topics) {
  std::vector<PartitionId> out;
  for (const std::string& name : names) {
    const std::size_t colon = name.rfind(':');
    const auto topic = std::ranges::find(topics, name.substr(0, colon));
    if (colon == std::string::npos || topic == topics.end()) continue;
    PartitionId id{static_cast<std::uint32_t>(topic - topics.begin()), 0};
    const auto read = std::from_chars(name.data() + colon + 1, name.data() + name.size(), id.partition);
    if (read.ec == std::errc() && read.ptr == name.data() + name.size()) out.push_back(id);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace rivulet::runtime
