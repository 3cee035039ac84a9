#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/status/node_status.h"

namespace rivulet::runtime {

/// Partitions that no member of the view claims, as "mnist:1": first those that the group has trained, then
/// what else the topics have. Nobody reads them, and their rows wait until retention takes them. Pure.
std::vector<std::string> unclaimed_partitions(const GroupClaims& claims, std::span<const TopicStatus> topics);

}  // namespace rivulet::runtime
