#include "runtime/train/train_metrics.h"

#include <limits>

#include "core/record.h"

namespace rivulet::runtime {

using sync::membership::Ignored;

TrainMetrics::TrainMetrics(MetricsSink& sink, bool classification)
    : rows_trained(sink.counter("rows_trained_total")),
      copies_trained(sink.counter("copies_trained_total")),
      record_bytes_trained(sink.counter("record_bytes_trained_total")),
      batch_rows(sink.histogram("batch_rows")),
      steps_applied(sink.counter("train_steps_total", {{"result", "applied"}})),
      steps_skipped(sink.counter("train_steps_total", {{"result", "skipped"}})),
      steps_idle(sink.counter("train_steps_total", {{"result", "idle"}})),
      steps_held(sink.counter("train_steps_total", {{"result", "deferred"}})),
      steps_local(sink.counter("train_steps_total", {{"result", "local_step"}})),
      wait(sink.histogram("step_duration_seconds", {{"phase", "wait"}})),
      compute(sink.histogram("step_duration_seconds", {{"phase", "compute"}})),
      agree(sink.histogram("step_duration_seconds", {{"phase", "agree"}})),
      total(sink.histogram("step_duration_seconds", {{"phase", "total"}})),
      record_delay(sink.histogram("record_delay_seconds")),
      loss_last(sink.gauge("train_loss", {{"window", "last"}})),
      loss_average(sink.gauge("train_loss", {{"window", "average"}})),
      own_loss(sink.gauge("train_own_loss")),
      eval_score(classification ? &sink.gauge("eval_score", {{"metric", "prequential_accuracy"}}) : nullptr),
      grad_norm(sink.gauge("grad_norm")),
      learning_rate(sink.gauge("learning_rate")),
      dropped_nonfinite(
          sink.counter("rows_dropped_total", {{"reason", name_of(DropReason::nonfinite_batch)}})),
      nonfinite_local(sink.counter("nonfinite_batches_total", {{"where", "local"}})),
      nonfinite_agreed(sink.counter("nonfinite_batches_total", {{"where", "agreed"}})),
      last_step(sink.gauge("last_step_timestamp_seconds")),
      model_parameters(sink.gauge("model_parameters")),
      world(sink.gauge("collective_world_size")),
      rank(sink.gauge("collective_rank")),
      view(sink.gauge("collective_view")),
      rounds_done(sink.counter("collective_operations_total", {{"op", "round"}, {"result", "ok"}})),
      rounds_failed(sink.counter("collective_operations_total", {{"op", "round"}, {"result", "failed"}})),
      states_taken(sink.counter("collective_operations_total", {{"op", "state"}, {"result", "ok"}})),
      states_failed(sink.counter("collective_operations_total", {{"op", "state"}, {"result", "failed"}})),
      divergences(sink.counter("divergences_total")),
      early_used(sink.counter("collective_operations_total", {{"op", "early_payload"}, {"result", "used"}})),
      early_wasted(
          sink.counter("collective_operations_total", {{"op", "early_payload"}, {"result", "wasted"}})),
      round_exchange(sink.histogram("collective_duration_seconds", {{"op", "round"}})),
      residual(sink.gauge("residual_norm")),
      residual_lost(sink.counter("residual_lost_norm_total")) {
  world.set(0);
  // Nobody has measured them yet, and 0 would be perfect.
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  loss_last.set(unknown);
  loss_average.set(unknown);
  own_loss.set(unknown);
  if (eval_score != nullptr) eval_score->set(unknown);
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

void TrainMetrics::enter_view(const sync::ViewSpec& spec) {
  world.set(spec.world());
  rank.set(spec.rank);
  view.set(static_cast<double>(spec.number));
}

void TrainMetrics::leave_view() {
  world.set(0);
}

}  // namespace rivulet::runtime
