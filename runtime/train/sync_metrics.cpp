#include "runtime/train/sync_metrics.h"

namespace rivulet::runtime {

SyncMetrics::SyncMetrics(MetricsSink& sink, NodeStatus& status)
    : sink_(sink),
      status_(status),
      slot_values_(sink.counter("sync_slot_bytes_total", {{"part", "values"}})),
      slot_positions_(sink.counter("sync_slot_bytes_total", {{"part", "positions"}})) {}

void SyncMetrics::enter_view(const sync::policy::Controllers& controllers) {
  counted_ = {};
  if (!figures_.empty()) return;  // the configuration gives the same figures in every view
  for (const sync::policy::ControllerEntry* controller : controllers)
    for (const sync::policy::Figure& figure : controller->figures)
      figures_.push_back(
          {controller, figure.place,
           &sink_.gauge("sync_figure", {{"controller", name_of(*controller)}, {"figure", figure.name}})});
}

void SyncMetrics::ended(const sync::policy::PolicyState& state, const sync::TransportCounters& bytes) {
  const sync::policy::Schedule& next = state.last.next;
  status_.local_steps = next.local ? next.local->steps : 0;
  status_.keep_ratio = next.way.keep_ratio;
  count(bytes);
  for (const Shown& shown : figures_)
    if (const auto* memory = memory_of(state, *shown.controller)) shown.gauge->set(memory->at(shown.place));
}

void SyncMetrics::slots(const sync::SlotBytes& so_far) {
  slot_values_.add(static_cast<double>(so_far.values - slots_counted_.values));
  slot_positions_.add(static_cast<double>(so_far.positions - slots_counted_.positions));
  slots_counted_ = so_far;
}

void SyncMetrics::count(const sync::TransportCounters& bytes) {
  status_.bytes_sent += bytes.bytes_sent - counted_.bytes_sent;
  status_.bytes_received += bytes.bytes_received - counted_.bytes_received;
  for (std::size_t kind = 0; kind < sync::traffic_kinds; ++kind)
    status_.bytes_sent_for[static_cast<sync::Traffic>(kind)] +=
        bytes.sent_for[kind] - counted_.sent_for[kind];
  counted_ = bytes;
}

}  // namespace rivulet::runtime
