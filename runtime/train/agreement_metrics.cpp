#include "runtime/train/agreement_metrics.h"

namespace rivulet::runtime {

AgreementMetrics::AgreementMetrics(MetricsSink& sink, NodeStatus& status)
    : sink_(sink),
      status_(status),
      own_steps_(sink.gauge("agreement_own_steps")),
      keep_ratio_(sink.gauge("agreement_keep_ratio")) {
  for (std::size_t kind = 0; kind < sent_.size(); ++kind)
    sent_[kind] =
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
  own_steps_.set(next.apart ? next.own_steps : 0);
  keep_ratio_.set(next.keep_ratio);
  status_.own_steps.store(next.apart ? next.own_steps : 0, std::memory_order_relaxed);
  status_.keep_ratio.store(next.keep_ratio, std::memory_order_relaxed);
  for (std::size_t kind = 0; kind < sent_.size(); ++kind) {
    const std::uint64_t sent = bytes.sent_for[kind] - counted_[kind];
    sent_[kind]->add(static_cast<double>(sent));
    status_.bytes_sent_for[kind].fetch_add(sent, std::memory_order_relaxed);
  }
  counted_ = bytes.sent_for;
  for (const Shown& shown : figures_)
    if (const auto* memory = memory_of(state, *shown.controller)) shown.gauge->set(memory->at(shown.place));
}

}  // namespace rivulet::runtime
