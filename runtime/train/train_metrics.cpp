#include "runtime/train/train_metrics.h"

#include <limits>

#include "core/record.h"

namespace rivulet::runtime {

using sync::membership::Ignored;

TrainMetrics::TrainMetrics(MetricsSink& sink)
    : injected_trained(sink.counter("injected_rows_trained_total")),
      batch_rows(sink.histogram("batch_rows")),
      steps_applied(sink.counter("train_steps_total", {{"result", "applied"}})),
      steps_skipped(sink.counter("train_steps_total", {{"result", "skipped"}})),
      steps_idle(sink.counter("train_steps_total", {{"result", "idle"}})),
      steps_deferred(sink.counter("train_steps_total", {{"result", "deferred"}})),
      steps_local(sink.counter("train_steps_total", {{"result", "local_step"}})),
      total(sink.histogram("step_duration_seconds", {{"phase", "total"}})),
      record_delay(sink.histogram("record_delay_seconds")),
      loss_last(sink.gauge("train_loss", {{"window", "last"}})),
      own_loss(sink.gauge("train_own_loss")),
      grad_norm(sink.gauge("grad_norm")),
      learning_rate(sink.gauge("learning_rate")),
      nonfinite_local(sink.counter("nonfinite_batches_total", {{"where", "local"}})),
      nonfinite_agreed(sink.counter("nonfinite_batches_total", {{"where", "agreed"}})),
      last_step(sink.gauge("last_step_timestamp_seconds")),
      model_parameters(sink.gauge("model_parameters")),
      rounds_done(sink.counter("collective_operations_total", {{"op", "round"}, {"result", "ok"}})),
      rounds_failed(sink.counter("collective_operations_total", {{"op", "round"}, {"result", "failed"}})),
      states_taken(sink.counter("collective_operations_total", {{"op", "state"}, {"result", "ok"}})),
      states_failed(sink.counter("collective_operations_total", {{"op", "state"}, {"result", "failed"}})),
      divergences(sink.counter("divergences_total")),
      round_exchange(sink.histogram("collective_duration_seconds", {{"op", "round"}})),
      residual(sink.gauge("residual_norm")),
      residual_lost(sink.counter("residual_lost_norm_total")) {
  // Not measured yet; 0 would look perfect.
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  loss_last.set(unknown);
  own_loss.set(unknown);
  for (std::size_t i = 0; i < ignored.size(); ++i)
    ignored[i] =
        &sink.counter("control_records_ignored_total", {{"reason", name_of(static_cast<Ignored>(i))}});
}

void TrainMetrics::count_ignored(const sync::membership::IgnoredRecords& so_far) {
  for (std::size_t i = 0; i < ignored.size(); ++i) {
    const auto reason = static_cast<Ignored>(i);
    ignored[i]->add(static_cast<double>(so_far.of(reason) - ignored_counted.of(reason)));
  }
  ignored_counted = so_far;
}

}  // namespace rivulet::runtime
