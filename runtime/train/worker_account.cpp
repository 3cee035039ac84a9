#include "runtime/train/worker.h"
#include "runtime/train/worker_meters.h"

// What a round was: metrics, status page, accuracy.
namespace rivulet::runtime {

using sync::policy::Mode;

void Worker::account_round() {
  const TimePoint now = parts_.clock.now();
  sync_seconds_ = to_seconds(now - entered_);
  count_mode();
  meters_->wait.observe(wait_seconds_);
  meters_->compute.observe(compute_seconds_);
  meters_->agree.observe(sync_seconds_);
  meters_->total.observe(to_seconds(now - round_ended_));
  meters_->rounds_done.add(1);
  meters_->round_exchange.observe(sync_seconds_);
  const auto& table = view_->session->table();
  const auto& mine = table.facts[view_->spec.rank];
  if (mine.rows > 0) meters_->batch_rows.observe(mine.rows);
  auto& status = parts_.status;
  status.batch_rows.store(mine.rows, std::memory_order_relaxed);
  status.wait_s.store(status.wait_s.load() + wait_seconds_);
  status.compute_s.store(status.compute_s.load() + compute_seconds_);
  status.sync_s.store(status.sync_s.load() + sync_seconds_);
  status.steps.store(parts_.state->stamp.step);
  status.group_rows.store(parts_.state->rows);
  status.seconds_training.store(to_seconds(now - training_since_));
  status.rows_waiting.store(parts_.rows.waiting(), std::memory_order_relaxed);
  if ((mine.flags & sync::flag_digest) != 0 && table.size() > 1)
    status.digests_compared.fetch_add(table.size());
  count_early();
  count_bytes();
  measure_state(now);
  books_.publish(*parts_.state, now);
}

void Worker::count_mode() {
  switch (view_->session->plan().now.mode) {
    case Mode::idle: meters_->steps_idle.add(1); break;
    case Mode::hold: meters_->steps_held.add(1); break;
    case Mode::local: meters_->steps_local.add(1); break;
    case Mode::skip: meters_->steps_skipped.add(1); break;
    case Mode::gradients:
    case Mode::delta: break;  // counted where they are applied
  }
}

void Worker::count_early() {
  switch (view_->session->early()) {
    case sync::SpeculationOutcome::none: break;
    case sync::SpeculationOutcome::used:
      meters_->early_used.add(1);
      parts_.status.early_used.fetch_add(1, std::memory_order_relaxed);
      break;
    case sync::SpeculationOutcome::wasted:
      meters_->early_wasted.add(1);
      parts_.status.early_wasted.fetch_add(1, std::memory_order_relaxed);
      break;
  }
}

void Worker::count_bytes() {
  const auto bytes = view_->transport->counters();
  const std::uint64_t sent = bytes.bytes_sent - meters_->counted.bytes_sent;
  const std::uint64_t received = bytes.bytes_received - meters_->counted.bytes_received;
  meters_->counted = bytes;
  meters_->sent.add(static_cast<double>(sent));
  meters_->received.add(static_cast<double>(received));
  parts_.status.bytes_sent.fetch_add(sent);
  parts_.status.bytes_received.fetch_add(received);
}

/// Test-then-train over the rows of the whole group.
void Worker::measure_state(TimePoint now) {
  const sync::RoundTotals& all = view_->session->last_round()->totals;
  const bool used =
      view_->session->plan().now.mode != Mode::hold && view_->session->plan().now.mode != Mode::idle;
  if (all.rows == 0 || !used) return;
  prequential_.add(all.rows, all.loss_sum, all.correct);
  meters_->loss_last.set(all.loss_sum / static_cast<double>(all.rows));
  meters_->loss_average.set(prequential_.loss());
  parts_.status.loss.store(prequential_.loss());
  if (!config_.classification) return;
  meters_->eval_score->set(prequential_.accuracy());
  parts_.status.accuracy.store(prequential_.accuracy());
  if (prequential_.full()) time_to_accuracy_.add(to_seconds(now - training_since_), prequential_.accuracy());
}

}  // namespace rivulet::runtime
