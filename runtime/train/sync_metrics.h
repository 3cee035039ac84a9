#pragma once
#include <vector>

#include "core/metrics.h"
#include "runtime/status/node_status.h"
#include "sync/policy/controller.h"
#include "sync/residual/residual.h"
#include "sync/transport/transport.h"

namespace rivulet::runtime {

/// Metrics and status of synchronization: schedule, bytes sent, figures from controllers. Owner: the train
/// thread.
class SyncMetrics {
 public:
  SyncMetrics(MetricsSink& sink, NodeStatus& status);
  /// Call at the start of a view. Shows the figures of `controllers` from now on.
  void enter_view(const sync::policy::Controllers& controllers);
  void ended(const sync::policy::PolicyState& state, const sync::TransportCounters& bytes);
  void slots(const sync::SlotBytes& so_far);

 private:
  void count(const sync::TransportCounters& bytes);

  struct Shown {
    const sync::policy::ControllerEntry* controller;
    std::size_t place;
    Gauge* gauge;
  };
  MetricsSink& sink_;
  NodeStatus& status_;
  sync::TransportCounters counted_;  ///< counters of the current view already added to the metrics
  Counter& slot_values_;
  Counter& slot_positions_;
  sync::SlotBytes slots_counted_;
  std::vector<Shown> figures_;
};

}  // namespace rivulet::runtime
