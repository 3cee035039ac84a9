#include "runtime/train/agreement_metrics.h"

namespace rivulet::runtime {

AgreementMetrics::AgreementMetrics(MetricsSink& sink, NodeStatus& status)
    : sink_(sink),
      status_(status),
      own_steps_(sink.gauge("agreement_own_steps")),
      keep_ratio_(sink.gauge("agreement_keep_ratio")),
      sent_(sink.counter("collective_sent_bytes_total")),
      received_(sink.counter("collective_received_bytes_total")),
      slot_values_(sink.counter("agreement_slot_bytes_total", {{"part", "values"}})),
      slot_positions_(sink.counter("agreement_slot_bytes_total", {{"part", "positions"}})) {
  for (std::size_t kind = 0; kind < sent_for_.size(); ++kind)
    sent_for_[kind] =
        &sink.counter("agreement_sent_bytes_total", {{"traffic", name_of(static_cast<sync::Traffic>(kind))}});
}

void AgreementMetrics::enter_view(const sync::policy::Controllers& controllers) {
  counted_ = {};
  if (!figures_.empty()) return;  // the configuration names the same ones in every view
  for (const sync::policy::ControllerEntry* controller : controllers)
    for (const sync::policy::Figure& figure : controller->figures)
      figures_.push_back({controller, figure.place,
                          &sink_.gauge("agreement_figure",
                                       {{"controller", name_of(*controller)}, {"figure", figure.name}})});
}

void AgreementMetrics::ended(const sync::policy::PolicyState& state, const sync::TransportCounters& bytes) {
  const sync::policy::Schedule& next = state.last.next;
  const std::uint32_t own_steps = next.apart ? next.own_steps : 0;
  own_steps_.set(own_steps);
  keep_ratio_.set(next.keep_ratio);
  status_.own_steps.store(own_steps, std::memory_order_relaxed);
  status_.keep_ratio.store(next.keep_ratio, std::memory_order_relaxed);
  count(bytes);
  for (const Shown& shown : figures_)
    if (const auto* memory = memory_of(state, *shown.controller)) shown.gauge->set(memory->at(shown.place));
}

void AgreementMetrics::slots(const sync::SlotBytes& so_far) {
  slot_values_.add(static_cast<double>(so_far.values - slots_counted_.values));
  slot_positions_.add(static_cast<double>(so_far.positions - slots_counted_.positions));
  slots_counted_ = so_far;
}

void AgreementMetrics::count(const sync::TransportCounters& bytes) {
  const std::uint64_t sent = bytes.bytes_sent - counted_.bytes_sent;
  const std::uint64_t received = bytes.bytes_received - counted_.bytes_received;
  sent_.add(static_cast<double>(sent));
  received_.add(static_cast<double>(received));
  status_.bytes_sent.fetch_add(sent);
  status_.bytes_received.fetch_add(received);
  for (std::size_t kind = 0; kind < sent_for_.size(); ++kind) {
    const std::uint64_t sent_for = bytes.sent_for[kind] - counted_.sent_for[kind];
    sent_for_[kind]->add(static_cast<double>(sent_for));
    status_.bytes_sent_for[kind].fetch_add(sent_for, std::memory_order_relaxed);
  }
  counted_ = bytes;
}

}  // namespace rivulet::runtime
