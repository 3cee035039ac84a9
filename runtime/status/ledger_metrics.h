#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/metrics.h"
#include "core/time.h"
#include "runtime/state/agreed_state.h"
#include "runtime/status/node_status.h"

namespace rivulet::runtime {

/// Shows the ledger of this device's partitions: status page and metrics, whose series it makes with itself,
/// for who makes one may have to wait for a scrape. Owner: the train thread.
class LedgerMetrics {
 public:
  LedgerMetrics(MetricsSink& metrics, NodeStatus& status, std::span<const PartitionId> own,
                const std::vector<std::string>& topics);
  ~LedgerMetrics();
  /// At most every quarter of a second; else it does nothing.
  void publish(const AgreedState& state, TimePoint now);

 private:
  struct Gauges;
  NodeStatus& status_;
  std::map<PartitionId, std::unique_ptr<Gauges>> gauges_;
  TimePoint next_{};
};

}  // namespace rivulet::runtime
