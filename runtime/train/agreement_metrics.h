#pragma once
#include <vector>

#include "core/metrics.h"
#include "runtime/status/node_status.h"
#include "sync/policy/controller.h"
#include "sync/residual/residual.h"
#include "sync/transport/transport.h"

namespace rivulet::runtime {

/// How the group agrees, on how much, and what its controllers go by, as metrics and on the status page.
/// Owner: the train thread.
class AgreementMetrics {
 public:
  AgreementMetrics(MetricsSink& sink, NodeStatus& status);
  /// A view begins: its controllers, whose figures are shown from now on.
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
  sync::TransportCounters counted_;  ///< what the counters have seen of the current view
  Counter& slot_values_;
  Counter& slot_positions_;
  sync::SlotBytes slots_counted_;
  std::vector<Shown> figures_;
};

}  // namespace rivulet::runtime
