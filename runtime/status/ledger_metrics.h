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

/// Publishes the ledger of this device's partitions to the status page and metrics. Creates the series at
/// construction, because creating one may wait for a scrape. Owner: the train thread.
class LedgerMetrics {
 public:
  LedgerMetrics(MetricsSink& metrics, NodeStatus& status, std::span<const PartitionId> own,
                const std::vector<std::string>& topics);
  ~LedgerMetrics();
  /// Publishes at most four times a second; otherwise does nothing.
  void publish(const AgreedState& state, TimePoint now);

 private:
  struct Gauges;
  NodeStatus& status_;
  std::map<PartitionId, std::unique_ptr<Gauges>> gauges_;
  TimePoint next_{};
};

}  // namespace rivulet::runtime
