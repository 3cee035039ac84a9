#include "runtime/status/health/unclaimed.h"

#include <set>
#include <utility>

namespace rivulet::runtime {

std::vector<std::string> unclaimed_partitions(const GroupClaims& claims,
                                              std::span<const TopicStatus> topics) {
  std::set<std::string> seen(claims.claimed.begin(), claims.claimed.end());
  std::vector<std::string> unclaimed;
  const auto look = [&](std::string name) {
    if (seen.insert(name).second) unclaimed.push_back(std::move(name));
  };
  for (const auto& name : claims.trained) look(name);
  for (const TopicStatus& topic : topics)
    for (int partition = 0; !topic.control && partition < topic.partitions; ++partition)
      look(topic.name + ":" + std::to_string(partition));
  return unclaimed;
}

}  // namespace rivulet::runtime
