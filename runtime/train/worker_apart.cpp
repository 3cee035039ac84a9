#include <algorithm>

#include "runtime/train/worker.h"

// Between agreements: each device steps on its own copy, and what it tells of that when the group agrees
// again.
namespace rivulet::runtime {

/// Until the group agrees again, each device steps at its own pace. A dry run makes no steps.
bool Worker::is_apart() const {
  return view_->session->plan().next.apart && !config_.dry_run;
}

/// Own steps may also be left from a view that was lost.
bool Worker::contributes_movement() const {
  return is_apart() || memory_.model->own().rows() > 0;
}

Turn Worker::step_apart() {
  const TimePoint now = parts_.clock.now();
  const auto& schedule = view_->session->plan().next;
  OwnSteps& own = model_.own();
  const bool complete = own.complete(schedule, now);
  if (complete || own.full(parts_.commits.partitions().size()) || asked_to_end() || clock_.time_is_up(now) ||
      view_->session->peer_called()) {
    times_.early = !complete;
    times_.wait_seconds = 0;
    return compute_and_enter();
  }
  const std::size_t have = rows_.batch().own_rows() + rows_.waiting();
  // Of a stream whose next row is far away, or whose rate nobody knows yet, nothing is asked: it steps with
  // what it has, as soon as that is a batch's least.
  const std::size_t least = std::max<std::size_t>(1, config_.session.policy.min);
  const std::size_t planned = schedule.rows[view_->spec.rank];
  const std::size_t wanted = planned > 0 ? planned : std::min<std::size_t>(have, config_.session.policy.max);
  const std::size_t asked = std::min(wanted, rows_.batch().rows_max());
  if (!own.is_due(have, std::max(least, asked), schedule.wait, now)) {
    parts_.status.state.store(schedule.rest ? NodeState::idle : NodeState::waiting);
    return {.wake_at = own.next_at(schedule)};
  }
  if (have >= least && rows_.fill(std::max(least, asked), schedule.whole)) model_.invalidate();
  if (rows_.batch().rows() == 0) {
    own.pass(now);
    return again();
  }
  parts_.status.state.store(NodeState::training);
  return make_own_step();
}

Turn Worker::make_own_step() {
  const TimePoint began = parts_.clock.now();
  if (auto computed = model_.compute(rows_.batch().view(), *parts_.state); !computed)
    return end(computed.error());
  if (auto refused = refuse_nonfinite(); !refused) return end(refused.error());
  if (auto announced = rows_.announce(model_.finite()); !announced) return end(announced.error());
  if (!model_.finite()) {
    model_.own().pass(parts_.clock.now());
    keep(Fate::dropped);
    return again();
  }
  const std::size_t rows = rows_.batch().rows();
  if (auto stepped = model_.step(*parts_.state, rows, view_->session->plan().now.learning_rate_factor);
      !stepped)
    return end(stepped.error());
  const TimePoint now = parts_.clock.now();
  model_.own().add(model_.report(), rows_.batch().own_tags(), to_seconds(now - began), now);
  report_.own_step(model_.applied(), model_.compute_seconds());
  keep(Fate::trained);
  return again();
}

/// Of this round: a gradient, or how far own steps have come.
Status Worker::prepare_contribution() {
  return contributes_movement() ? model_.prepare_delta(*parts_.state, 0, 1.0) : model_.prepare_gradient();
}

/// What its controllers want to know. The contribution is made for it, or because it leaves with the facts.
Status Worker::measure(sync::Facts& facts) {
  if (facts.rows > 0 && (view_->session->speculates() || measures_.wants_sketches())) {
    if (auto prepared = prepare_contribution(); !prepared) return prepared;
    if (!contributes_movement()) model_.sketch_gradient(parts_.trainer.layout());
  }
  std::uint64_t record_bytes = model_.own().record_bytes();
  for (const RowTag& row : rows_.batch().own_tags()) record_bytes += row.record_bytes;
  facts.measurements = measures_.take({.model = model_,
                                       .record_bytes = record_bytes,
                                       .apart_seconds = to_seconds(times_.entered - times_.last_ended),
                                       .bytes_sent = view_->transport->counters().bytes_sent});
  return ok();
}

/// The steps that were made since the group agreed last count as this round's batch.
void Worker::add_own_steps(sync::Facts& facts) {
  const OwnSteps& own = model_.own();
  facts.rows = own.rows();
  facts.rows_since_sync = 0;
  facts.loss_sum = own.loss_sum();
  facts.correct = own.correct();
  facts.gradient_norm2 = own.gradient_norm2();
  facts.compute_seconds = own.compute_seconds();
  facts.flags |= (own.rows() > 0 ? sync::flag_own_steps : 0U) | (times_.early ? sync::flag_early : 0U);
}

sync::FactsSection Worker::my_section() {
  sync::FactsSection section = rows_.section();
  // What own steps of earlier views have left: a replay must begin with it. A pass over all of it.
  if (view_->session->round() == 0)
    if (const auto kept = model_.kept_digest(); kept != 0) section.private_state = {kept};
  if (!contributes_movement()) return section;
  std::vector<RowInterval> intervals{rows_.first_interval()};
  intervals.insert(intervals.end(), section.more_intervals.begin(), section.more_intervals.end());
  section.step_rows = model_.own().rows_of(intervals);
  return section;
}

}  // namespace rivulet::runtime
