#include "runtime/state/unclaimed.h"

#include <set>
#include <string_view>
#include <utility>

#include "runtime/process/topic_name.h"

namespace rivulet::runtime {

std::vector<std::string> unclaimed_partitions(const std::map<PartitionId, PartitionProgress>& known,
                                              const std::map<std::string, std::vector<std::string>>& claims,
                                              std::span<const std::string> topics) {
  std::set<std::string_view> claimed;
  for (const auto& [device, partitions] : claims) claimed.insert(partitions.begin(), partitions.end());
  std::vector<std::string> unclaimed;
  for (const auto& [id, progress] : known)
    if (std::string name = text_of(id, topics); !claimed.contains(name)) unclaimed.push_back(std::move(name));
  return unclaimed;
}

}  // namespace rivulet::runtime
