#include "runtime/train/round_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace rivulet::runtime {

using sync::policy::Mode;

namespace {

/// Short enough to show a model that has just diverged, long enough that single rows do not hide it.
constexpr std::uint64_t own_window = 64;

}  // namespace

RoundReport::RoundReport(const Parts& parts)
    : parts_(parts),
      created_(parts.clock.now()),
      metrics_(parts.metrics),
      sync_metrics_(parts.metrics, parts.status),
      ledger_(parts.metrics, parts.status, parts.partitions, parts.topics),
      prequential_(parts.prequential_window),
      own_(own_window),
      squares_(own_window) {
  if (parts.classification) parts.status.measures(parts.status.accuracy);
  if (parts.classes > 1) parts.status.guess_loss.store(std::log(static_cast<double>(parts.classes)));
}

void RoundReport::enter_view(const sync::ViewSpec& spec, const sync::policy::Controllers& controllers) {
  parts_.status.view = spec.number;
  parts_.status.rank = spec.rank;
  parts_.status.world = spec.world();
  view_changed_ = last_step_.has_value();
  sync_metrics_.enter_view(controllers);
}

void RoundReport::all_published(Fate fate, std::size_t own, const BatchView& batch) {
  measure_guess(own, batch);
  if (fate != Fate::trained || own == 0) return;
  observe_delay(batch);
  LocalInterval::Trained& trained = parts_.intervals.current.trained;
  ++trained.batches;
  for (const RowTag& tag : batch.tags.first(std::min(own, batch.tags.size())))
    trained.record_bytes += tag.record_bytes;
}

/// The bytes are the minimum for sending the rows to one server instead.
void RoundReport::credit(const Credit& rows, std::uint64_t step) {
  const LocalInterval::Trained of = std::exchange(parts_.intervals.oldest().trained, {});
  if (rows.nonfinite > 0) drop(rows.nonfinite, step);
  if (rows.trained == 0) return;
  parts_.status.rows_trained += rows.trained;
  parts_.status.record_bytes_trained += of.record_bytes;
  parts_.status.batches += of.batches;
}

void RoundReport::drop(std::uint64_t rows, std::uint64_t step) {
  dropped_ += rows;
  parts_.status.rows_dropped[DropReason::nonfinite_batch] += rows;
  warn_of_nonfinite(rows, step);
}

/// A diverged model drops every batch: warns, but not in every round.
void RoundReport::warn_of_nonfinite(std::uint64_t rows, std::uint64_t step) {
  constexpr Duration quiet = std::chrono::seconds(10);
  const TimePoint now = parts_.clock.now();
  if (now < warn_again_at_) return;
  warn_again_at_ = now + quiet;
  parts_.log.write(
      Level::warn,
      "rows dropped: their loss or gradient is not finite, or has exploded; the model may have diverged",
      {{"rows", std::to_string(rows)},
       {"rows_in_all", std::to_string(dropped_)},
       {"step", std::to_string(step)}});
}

/// From the record's timestamp to its training, for the oldest row of the batch.
void RoundReport::observe_delay(const BatchView& batch) {
  const auto tags = batch.tags;
  if (tags.empty() || tags.front().timestamp_ms <= 0) return;
  metrics_.record_delay.observe(static_cast<double>(unix_time_ms() - tags.front().timestamp_ms) / 1000.0);
}

void RoundReport::stepped(const StepMade& made, Mode mode) {
  if (!made.finite) {
    metrics_.nonfinite_agreed.add(1);
    metrics_.steps_skipped.add(1);
    return;
  }
  if (mode == Mode::gradients) {
    metrics_.grad_norm.set(made.gradient_norm);
    metrics_.learning_rate.set(made.learning_rate);
  }
  if (std::isnan(parts_.status.first_step_s.load()))
    parts_.status.first_step_s = parts_.age_at_start_s + to_seconds(parts_.clock.now() - created_);
  const TimePoint now = parts_.clock.now();
  if (std::exchange(view_changed_, false)) {
    const double gap = to_seconds(now - *last_step_);
    parts_.status.view_gap_s = gap;
    parts_.status.view_gaps_s += gap;
  }
  last_step_ = now;
  metrics_.steps_applied.add(1);
  metrics_.last_step.set(static_cast<double>(unix_time_ms()) / 1000.0);
}

void RoundReport::took_batch(std::size_t rows) {
  if (rows > 0) metrics_.batch_rows.observe(static_cast<double>(rows));
  parts_.status.batch_rows = static_cast<std::uint32_t>(rows);
}

void RoundReport::local_step(const devices::ApplyReport& applied, double compute_seconds, std::size_t rows) {
  took_batch(rows);
  metrics_.steps_local.add(1);
  parts_.status.compute_s += compute_seconds;
  metrics_.grad_norm.set(applied.gradient_norm);
  metrics_.learning_rate.set(applied.learning_rate);
}

void RoundReport::ended(const Ended& round, RoundTimes& times) {
  const TimePoint now = parts_.clock.now();
  times.sync_seconds = to_seconds(now - times.entered);
  const double waited = std::max(0.0, times.sync_seconds - times.ahead_seconds);
  const auto& session = *round.view.session;
  count_mode(session.plan().now.mode);
  const auto& table = session.table();
  const auto& mine = table.facts[round.view.spec.rank];
  auto& status = parts_.status;
  status.wait_s += times.wait_seconds;
  // Time and rows of local steps were counted with each step.
  if ((mine.flags & sync::flag_local_steps) == 0) {
    status.compute_s += round.compute_seconds;
    took_batch(mine.rows);
  }
  status.sync_s += waited;
  metrics_.total.observe(to_seconds(now - times.last_ended));
  metrics_.rounds_done.add(1);
  metrics_.round_exchange.observe(times.sync_seconds);
  if (mine.rows > 0) metrics_.own_loss.set(mine.loss_sum / mine.rows);
  status.steps = round.state.stamp.step;
  status.group_rows = round.state.rows;
  status.seconds_training = round.seconds_training;
  status.rows_waiting = round.rows_waiting;
  if ((mine.flags & sync::flag_digest) != 0 && table.size() > 1) status.digests_compared += table.size();
  count_speculation(session.early());
  sync_metrics_.ended(session.policy_state(), round.view.transport->counters());
  measure_state(*session.last_round(), round.seconds_training);
  measure_own(mine);
  ledger_.publish(round.state, now);
}

void RoundReport::kept(const sync::Residual& residual) {
  metrics_.residual.set(residual.norm());
  sync_metrics_.slots(residual.slot_bytes());
}

void RoundReport::count_mode(Mode mode) {
  switch (mode) {
    case Mode::idle: metrics_.steps_idle.add(1); break;
    case Mode::defer: metrics_.steps_deferred.add(1); break;
    case Mode::skip: metrics_.steps_skipped.add(1); break;
    case Mode::gradients:
    case Mode::delta: break;  // counted where they are applied
  }
}

void RoundReport::count_speculation(sync::SpeculationOutcome outcome) {
  switch (outcome) {
    case sync::SpeculationOutcome::none: break;
    case sync::SpeculationOutcome::used: ++parts_.status.early_payloads[EarlyPayload::used]; break;
    case sync::SpeculationOutcome::wasted: ++parts_.status.early_payloads[EarlyPayload::wasted]; break;
  }
}

void RoundReport::measure_own(const sync::Facts& mine) {
  if (mine.rows == 0) return;
  own_.add(mine.rows, mine.loss_sum, 0);
  parts_.status.own_loss.store(own_.loss());
}

/// The baseline is an untrained model, which predicts 0, so its squared error is the squared target.
void RoundReport::measure_guess(std::size_t own, const BatchView& batch) {
  if (parts_.classes > 0 || own == 0 || batch.rows == 0) return;
  const std::size_t each = batch.targets.size() / batch.rows;
  double sum = 0;
  for (const float target : batch.targets.first(std::min(own, batch.rows) * each))
    sum += double{target} * double{target};
  squares_.add(own, sum / static_cast<double>(std::max<std::size_t>(each, 1)), 0);
  parts_.status.guess_loss.store(squares_.loss());
}

/// Test-then-train over the rows of the whole group.
void RoundReport::measure_state(const sync::Round& round, double seconds_training) {
  const sync::RoundTotals& all = round.totals;
  const Mode mode = round.plan().now.mode;
  if (all.rows == 0 || mode == Mode::defer || mode == Mode::idle) return;
  prequential_.add(all.rows, all.loss_sum, all.correct);
  metrics_.loss_last.set(all.loss_sum / static_cast<double>(all.rows));
  const double loss = prequential_.loss();
  parts_.status.loss = std::isfinite(loss) ? loss : std::numeric_limits<double>::infinity();
  parts_.status.window_full.store(prequential_.full());
  if (!parts_.classification) return;
  parts_.status.accuracy = prequential_.accuracy();
  if (prequential_.full()) time_to_accuracy_.add(seconds_training, prequential_.accuracy());
}

}  // namespace rivulet::runtime
