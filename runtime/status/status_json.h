#pragma once
#include <string>
#include <vector>

#include "runtime/status/node_status.h"
#include "runtime/status/summary.h"

namespace rivulet::runtime {

/// What a status page shows besides the figures.
struct NodeStatusText {
  std::string id;
  std::string job;
  std::string model;
  std::vector<std::string> topics;  ///< PartitionId::topic is an index of these
};

/// Everything of a NodeStatus as one JSON object, for /api/v1/status and the live view. Names are those of
/// NodeStatus, with rows_dropped {reason: rows}; what is not known (yet) is null. Thread-safe.
std::string status_json(const NodeStatus& status, const NodeStatusText& text);

/// This process's part of a summary; cpu_s and max_rss_bytes are the process's own.
DeviceSummary make_device_summary(const NodeStatus& status, const std::string& id);

}  // namespace rivulet::runtime
