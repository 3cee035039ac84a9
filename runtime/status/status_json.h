#pragma once
#include <string>
#include <vector>

#include "runtime/status/node_status.h"
#include "runtime/status/summary.h"

namespace rivulet::runtime {

/// Texts for the status page that are not in NodeStatus.
struct NodeStatusText {
  std::string id;
  std::string job;
  std::string model;
  std::vector<std::string> topics;  ///< indexed by PartitionId::topic
};

/// Renders a NodeStatus as one JSON object, for /api/v1/status and the live view. Keys are the names in
/// NodeStatus; rows_dropped is {reason: rows}; unknown values are null. Thread-safe.
std::string status_json(const NodeStatus& status, const NodeStatusText& text);

/// Makes this process's part of a summary; cpu_s and max_rss_bytes cover the whole process.
DeviceSummary make_device_summary(const NodeStatus& status, const std::string& id);

}  // namespace rivulet::runtime
