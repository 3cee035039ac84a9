#include <algorithm>

#include "runtime/train/worker.h"

// Local steps between synchronizations, and during a synchronization.
namespace rivulet::runtime {

/// True if devices make local steps at their own pace until the next synchronization. Never in a dry run.
bool Worker::steps_locally() const {
  return view_->session->plan().next.local && !config_.dry_run;
}

/// Local steps may also be left over from a lost view.
bool Worker::contributes_delta() const {
  return steps_locally() || model().own().rows() > 0;
}

/// True if the local steps are complete, no more can be made, or the gradients have changed enough.
bool Worker::must_synchronize(TimePoint now) const {
  const LocalSteps& own = model().own();
  const auto& schedule = view_->session->plan().next;
  return own.complete(schedule, now) || measurements_.norms().requests_sync(schedule) ||
         own.full(rows().partitions().size()) || hurries() || clock_.time_is_up(now);
}

Turn Worker::step_locally() {
  const TimePoint now = parts_.clock.now();
  if (!must_synchronize(now) && !view_->session->peer_requested_sync()) return step_when_due(now);
  round_.times.early = !model().own().complete(view_->session->plan().next, now);
  round_.times.wait_seconds =
      std::max(0.0, to_seconds(now - round_.times.last_ended) - model().own().computing());
  return compute_and_enter();
}

Turn Worker::step_when_due(TimePoint now) {
  const auto& schedule = view_->session->plan().next;
  LocalSteps& own = model().own();
  const std::size_t have = rows().batch().own_rows() + rows().waiting();
  // Without a known rate, or with the next row far away, no rows are planned: the device makes a step as soon
  // as its rows are a minimum batch.
  const std::size_t least = std::max<std::size_t>(1, config_.session.policy.min);
  const std::size_t planned = schedule.rows[view_->spec.rank];
  const std::size_t wanted = planned > 0 ? planned : std::min<std::size_t>(have, config_.session.policy.max);
  const std::size_t asked = std::min(wanted, rows().batch().rows_max());
  if (!own.is_due(have, std::max(least, asked), schedule.wait, now)) {
    parts_.status.state.store(schedule.rest ? NodeState::idle : NodeState::waiting);
    return {.wake_at = own.next_at(schedule)};
  }
  if (have >= least && rows().fill(std::max(least, asked), schedule.whole)) model().invalidate();
  if (rows().batch().rows() == 0) {
    own.pass(now);
    return again();
  }
  parts_.status.state.store(NodeState::training);
  return make_local_step();
}

/// True if local steps continue during the synchronization. A computing device answers no peer, so a step
/// must be much shorter than the deadline after which the device counts as lost.
bool Worker::overlaps() const {
  const LocalSteps& own = model().own();
  return view_->session->plan().next.overlaps() && steps_locally() && own.rows() > 0 && !end_requested() &&
         from_seconds(own.compute_seconds()) < config_.peer_deadline / 4;
}

void Worker::depart() {
  rows().keep();
  model().depart();
}

/// During a synchronization: makes a step of the next interval if one is due.
std::optional<Turn> Worker::step_ahead() {
  const TimePoint now = parts_.clock.now();
  if (!model().departed() || !steps_locally() || must_synchronize(now)) return std::nullopt;
  Turn turn = step_when_due(now);
  round_.times.ahead_seconds += to_seconds(parts_.clock.now() - now);
  if (turn.work == 0) turn.wake_at = std::min(turn.wake_at, now + peer_step);
  return turn;
}

/// Undoes all local steps since the last synchronization; their rows are read again.
void Worker::undo_local_steps() {
  model().roll_back(*parts_.state);
  memory_.intervals->current.trained = {};
  rows().start_at(*parts_.state);
}

Turn Worker::make_local_step() {
  const TimePoint began = parts_.clock.now();
  inject_rows();
  if (auto computed = model().compute(rows().batch().view(), rows().batch().own_rows(), *parts_.state);
      !computed)
    return end(computed.error());
  const std::size_t own_rows = rows().batch().own_rows();
  const double factor = round_.rate.of(own_rows);
  stream_.computed(model().report(), rows().batch().view(), own_rows);
  scores_.computed(model().report(), rows().batch().view(), own_rows);
  health_.computed(model(), rows().batch().view(), own_rows, *parts_.state, factor);
  if (auto refused = refuse_nonfinite(); !refused) return end(refused.error());
  if (auto announced = rows().announce(model().finite()); !announced) return end(announced.error());
  if (!model().finite()) {
    model().own().pass(parts_.clock.now());
    keep(Fate::dropped);
    return again();
  }
  if (auto stepped = model().step(*parts_.state, own_rows, factor); !stepped) return end(stepped.error());
  const TimePoint now = parts_.clock.now();
  model().own().add(model().report(), rows().batch().own_tags(), to_seconds(now - began), now);
  measurements_.stepped(rows().batch().rows(), to_seconds(now - began));
  measurements_.norms().add(model().report().gradient_norm2, view_->session->plan().next.norm_weight(),
                            rows().batch().rows());
  offer_rows();
  report_.local_step(model().applied(), model().compute_seconds(), own_rows);
  keep(Fate::trained);
  return again();
}

}  // namespace rivulet::runtime
