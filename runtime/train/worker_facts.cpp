#include "runtime/train/worker.h"
#include "sync/coding/norm.h"

// The facts that a device sends when it enters a round.
namespace rivulet::runtime {

sync::Facts Worker::my_facts(TimePoint now) {
  const bool finite = model().finite();
  const devices::StepReport& report = model().report();
  sync::Facts f;
  f.step = parts_.state->stamp.step;
  f.agreed_rows = parts_.state->rows;
  f.rows = finite ? static_cast<std::uint32_t>(rows().batch().own_rows()) : 0;
  f.queue_rows = static_cast<std::uint32_t>(rows().waiting());
  f.stream_rate = static_cast<float>(parts_.stream.rows_per_second.load(std::memory_order_relaxed));
  f.compute_seconds = static_cast<float>(model().compute_seconds() > 0 ? model().compute_seconds()
                                                                       : model().own().compute_seconds());
  f.wait_seconds = static_cast<float>(round_.times.wait_seconds);
  f.sync_seconds = static_cast<float>(round_.times.sync_seconds);
  f.loss_sum = finite ? report.loss_sum : 0;
  f.correct = finite ? report.correct : 0;
  f.gradient_norm2 = report.gradient_norm2;
  f.rows_dropped = parts_.stream.rows_dropped.load(std::memory_order_relaxed) + report_.dropped();
  f.rows_max = static_cast<std::uint32_t>(rows().rows_max());
  f.flags = (parts_.stop.load() > 0 ? sync::flag_leaving : 0U) |
            (parts_.membership.stop_requested() ? sync::flag_stop : 0U) |
            (finite && !round_.delta_refused ? 0U : sync::flag_nonfinite) |
            (rows().incomplete() ? sync::flag_incomplete : 0U) | (config_.dry_run ? sync::flag_dry_run : 0U) |
            (checkpoints_.is_due(now, *parts_.state) ? sync::flag_checkpoint : 0U) |
            (stream_.report_change() ? sync::flag_changed : 0U) | (regroups(now) ? sync::flag_joiner : 0U) |
            health_.flags();
  clock_.add_stop_conditions(f, now, rows().batch().own_rows());
  if (shows_digest()) {
    f.flags |= sync::flag_digest;
    f.digest = round_.digest;
  }
  f.interval = rows().first_interval();
  if (contributes_delta()) add_local_steps(f);
  return f;
}

bool Worker::shows_digest() const {
  return view_->session->round() % config_.digest_every == 0;
}

/// Computed from memory in every digest round, even if no round was applied since the last: the digest must
/// also detect memory corruption.
Status Worker::refresh_digest() {
  if (!shows_digest()) return ok();
  auto digest = parts_.state.digest(view_->session->last_round()->work, parts_.device);
  if (!digest) return digest.error();
  round_.digest = digest.value();
  parts_.status.set_digest(round_.digest.hex());
  return ok();
}

/// Adds the measurements requested by controllers. Prepares the contribution for them, or to send it with
/// facts.
Status Worker::measure(sync::Facts& facts) {
  const bool wanted = view_->session->speculates() || measurements_.requests_sketches() ||
                      measurements_.requests_gains() || measurements_.requests_norm();
  if (facts.rows > 0 && (wanted || overlaps())) {
    if (auto prepared = prepare_contribution(); !prepared) return prepared;
    if (!contributes_delta()) model().sketch_gradient(parts_.trainer.layout());
  }
  std::uint64_t record_bytes = model().own().record_bytes();
  for (const RowTag& row : rows().batch().own_tags()) record_bytes += row.record_bytes;
  const double apart = to_seconds(round_.times.entered - round_.times.last_ended);
  const double stepping = overlaps() ? to_seconds(model().own().stepping()) : apart;
  facts.measurements = measurements_.take({.model = model(),
                                           .record_bytes = record_bytes,
                                           .local_seconds = apart,
                                           .stepping_seconds = stepping,
                                           .bytes_sent = view_->transport->counters().bytes_sent,
                                           .gains = my_gains(facts.rows),
                                           .kept_norm = residual_.numbers().norm()});
  return ok();
}

/// Gains of the parameters in this device's contribution, including its residual of earlier rounds.
sync::Gains Worker::my_gains(std::uint32_t rows) {
  if (!(measurements_.requests_gains() || measurements_.requests_norm()) || rows == 0) return {};
  const GradientView mine = model().contribution().slice(0, parts_.trainer.layout().parameters);
  const double weight = view_->session->expected_weight(rows);
  if (!measurements_.requests_gains()) return {.gradient_norm = weight * sync::norm_of(mine)};
  sync::Residual& residual = residual_.numbers();
  const bool alike = residual.of_deltas() == contributes_delta();
  return sync::gains_of(mine, weight, alike ? residual.kept() : GradientView{});
}

/// Local steps since the last synchronization count as this round's batch.
void Worker::add_local_steps(sync::Facts& facts) {
  const LocalSteps& own = model().own();
  facts.rows = own.rows();
  facts.loss_sum = own.loss_sum();
  facts.correct = own.correct();
  facts.gradient_norm2 = own.gradient_norm2();
  facts.compute_seconds = static_cast<float>(own.compute_seconds());
  facts.flags |=
      (own.rows() > 0 ? sync::flag_local_steps : 0U) | (round_.times.early ? sync::flag_early : 0U);
}

sync::FactsSection Worker::my_section() {
  sync::FactsSection section = rows().section();
  // Digest of the optimizer memory left by local steps of earlier views, for replays. Cost: a pass over it.
  if (view_->session->round() == 0)
    if (const auto kept = model().kept_digest(); kept != 0) section.private_state = {kept};
  if (!contributes_delta()) return section;
  std::vector<RowInterval> intervals{rows().first_interval()};
  intervals.insert(intervals.end(), section.more_intervals.begin(), section.more_intervals.end());
  section.step_rows = model().own().rows_of(intervals);
  if (const std::uint32_t ahead = model().own().ahead(); ahead > 0) section.steps_ahead = {ahead};
  return section;
}

/// This round's contribution: a gradient, or the delta of local steps.
Status Worker::prepare_contribution() {
  if (!contributes_delta()) return model().prepare_gradient();
  return model().is_prepared() ? ok() : model().prepare_delta(*parts_.state);
}

}  // namespace rivulet::runtime
