#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/status/node_status.h"

namespace rivulet::runtime {

/// Returns the partitions that no member of the view claims, as "mnist:1". Partitions that the group has
/// trained on come first, then the other partitions of the topics. Their rows are not read and eventually
/// expire by retention. Pure.
std::vector<std::string> unclaimed_partitions(const GroupClaims& claims, std::span<const TopicStatus> topics);

}  // namespace rivulet::runtime
