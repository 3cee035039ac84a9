#include <bit>

#include "runtime/train/worker.h"
#include "sync/coding/norm.h"

// Checks before contributing, and counts after the group's decision.
namespace rivulet::runtime {

LiveScores::Parts Worker::score_parts() const {
  return {parts_.clock,           parts_.status,       parts_.metrics,
          config_.classification, config_.class_names, config_.prequential_window};
}

Status Worker::refuse_nonfinite() {
  return model().finite() ? ok() : count_refused(rows().batch().own_rows());
}

Status Worker::count_refused(std::size_t rows) {
  health_.refused(rows);
  report_.metrics().nonfinite_local.add(1);
  if (!config_.stop_on_nonfinite) return ok();
  return Error{
      ErrorCode::numeric,
      "the loss or gradient of a batch is not finite, or has exploded; train.on_nonfinite = \"stop\""};
}

/// The last check of a delta before it is sent: one value of one device that is not finite would cost the
/// rows of all devices. Undoes a delta that cannot be part of a sum and drops its rows.
Status Worker::check_delta() {
  round_.delta_refused = false;
  if (!contributes_delta() || model().own().rows() == 0) return ok();
  if (auto prepared = prepare_contribution(); !prepared) return prepared;
  if (health_.accepts_delta(model())) return ok();
  round_.delta_refused = true;
  const std::size_t refused_rows = model().own().rows();
  model().roll_back(*parts_.state);
  rows().drop_pending();
  memory_.intervals->current.trained = {};
  if (auto refused = count_refused(refused_rows); !refused) return refused;
  return model().prepare_delta(*parts_.state);  // an empty delta
}

/// Measures the norm of the parameters: every 64 rounds, and more often at the start of a view.
Status Worker::measure_state() {
  constexpr std::uint64_t every = 64;
  const auto& round = *view_->session->last_round();
  const auto mode = round.plan().now.mode;
  if (mode == sync::policy::Mode::gradients || mode == sync::policy::Mode::delta)
    health_.agreed(round.totals.loss_sum, round.totals.rows);
  const std::uint64_t rounds = view_->session->round();
  if (rounds % every != 0 && !std::has_single_bit(rounds)) return ok();
  auto host = parts_.device.to_host(parts_.state->model.parameters());
  if (!host) return host.error();
  health_.state_at(sync::norm_of(host.value()));
  return ok();
}

/// Adds this device's rows in the agreed state to its counters.
void Worker::credit() {
  RoundReport::Credit now;
  for (const PartitionId& id : rows().partitions()) {
    const auto known = parts_.state->partitions.find(id);
    if (known == parts_.state->partitions.end()) continue;
    now.trained += known->second.trained;
    now.nonfinite += known->second.dropped.at(static_cast<std::size_t>(DropReason::nonfinite_batch));
  }
  if (now == credited_) return;
  const auto more = [](std::uint64_t to, std::uint64_t from) { return to > from ? to - from : 0; };
  // Skips states of earlier runs of this device and older states.
  if (clock_.entered())
    report_.credit({more(now.trained, credited_.trained), more(now.nonfinite, credited_.nonfinite)},
                   parts_.state->stamp.step);
  credited_ = now;
}

}  // namespace rivulet::runtime
