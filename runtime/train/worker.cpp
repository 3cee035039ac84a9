#include "runtime/train/worker.h"

#include <algorithm>

#include "runtime/state/announced.h"
#include "runtime/state/round_update.h"
#include "runtime/train/make_step.h"

// The phases of a round: collect rows, compute, exchange facts, exchange payloads, finish.
namespace rivulet::runtime {
namespace {

using sync::policy::Mode;

// A device that is requested to leave exits within 10 s, even if a peer hangs and sync.deadline is longer.
constexpr Duration leave_patience = std::chrono::seconds(8);

}  // namespace

Worker::Worker(const WorkerConfig& config, const Parts& parts, Memory memory)
    : config_(config),
      parts_(parts),
      memory_(std::move(memory)),
      clock_(config.stop_after, config.dry_run),
      residual_(
          sync::Residual(config.session.shape,
                         sync::policy::exchanges_deltas(config.session.policy, parts.catalog.controllers),
                         config.session.delta_per_gradient)),
      checkpoints_(checkpoint_parts()),
      report_(report_parts()),
      copy_(make_copy()),
      entry_(entry_parts()),
      health_({parts_.clock, parts_.status, config_.optimizer, config_.targets, config_.classes,
               config_.classification}),
      stream_(stream_parts()),
      scores_(score_parts()),
      measurements_(config.speed_hint),
      injected_rows_({config.session.row_shape, config.usual_features, config.features_may_miss},
                     config.classes, config.injection_seed) {}

Worker::~Worker() = default;

Result<std::unique_ptr<Worker>> Worker::create(const WorkerConfig& config, const Parts& parts) {
  auto memory = allocate(config, parts);
  if (!memory) return memory.error();
  std::unique_ptr<Worker> worker(new Worker(config, parts, std::move(memory).value()));
  if (auto held = worker->entry_.announce_state(); !held) return held.error();
  worker->checkpoints_.begin(parts.state->stamp);
  worker->report_.metrics().model_parameters.set(static_cast<double>(parts.trainer.layout().parameters));
  worker->rows().start_at(*parts.state);  // the source needs its assignment before the first poll
  return worker;
}

Result<Worker::Memory> Worker::allocate(const WorkerConfig& config, const Parts& parts) {
  auto intervals = std::make_unique<LocalIntervals>();
  auto rows = RoundRows::create(
      config.session.rows_max, parts.device, config.partitions,
      {parts.rows, parts.ledger, parts.commits, parts.assignments, *intervals, parts.ingest});
  if (!rows) return rows.error();
  auto model = LocalModel::create({parts.clock, parts.device, parts.trainer, config.optimizer, *intervals});
  if (!model) return model.error();
  const auto& layout = parts.trainer.layout();
  auto agreed = parts.device.allocate_shared(layout.contribution() * bytes_of(layout.scalar));
  if (!agreed) return agreed.error();
  const GradientView view = agreed.value()->view(layout.scalar, layout.contribution());
  return Memory{std::move(intervals), std::move(rows).value(), std::move(model).value(),
                std::move(agreed).value(), view};
}

CheckpointCycle::Parts Worker::checkpoint_parts() const {
  return {parts_.clock,  parts_.checkpoints,          parts_.membership, parts_.commits,
          parts_.ingest, residual_.numbers(),         model(),           parts_.status,
          parts_.log,    config_.checkpoint_interval, config_.dry_run};
}

Status Worker::begin_with(const PrivatePart& part) {
  const bool of_deltas = residual_.numbers().of_deltas();
  residual_.restore(part, *parts_.state);
  return of_deltas ? model().begin_with(part, *parts_.state) : ok();
}

RoundReport::Parts Worker::report_parts() const {
  return {parts_.clock,    parts_.status,          parts_.metrics,         rows().partitions(),
          parts_.log,      config_.owner.topics,   config_.classification, config_.prequential_window,
          config_.classes, config_.age_at_start_s, *memory_.intervals};
}

StreamWatch::Parts Worker::stream_parts() const {
  return {parts_.clock, parts_.status, parts_.metrics, parts_.log, config_.classification, config_.features};
}

std::unique_ptr<StateCopy> Worker::make_copy() {
  if (parts_.donor == nullptr) return nullptr;
  return std::make_unique<StateCopy>(
      StateCopy::Parts{parts_.clock, parts_.wake, *parts_.connect_copy, parts_.membership, config_.owner,
                       parts_.trainer.layout(), parts_.device, config_.optimizer, memory_.agreed_scratch,
                       config_.peer_deadline, parts_.log});
}

ViewEntry::Parts Worker::entry_parts() {
  return {parts_.clock,      parts_.wake,
          parts_.membership, parts_.connect,
          parts_.state,      rows(),
          model(),           residual_.numbers(),
          checkpoints_,      copy_.get(),
          parts_.device,     parts_.trainer.layout(),
          config_.owner,     config_.peer_deadline,
          parts_.status,     report_.metrics(),
          parts_.log};
}

Turn Worker::step() {
  const TimePoint now = parts_.clock.now();
  parts_.status.train_beat_ns = now.time_since_epoch().count();
  parts_.status.own_rows.store(model().own().rows(), std::memory_order_relaxed);
  static_cast<void>(
      parts_.status.publish_deferred());  // what cannot be shown now is retried in the next step
  if (phase_ != Phase::ended && !watch_membership(now))
    return {.work = 1, .finished = phase_ == Phase::ended};
  stream_.pass();
  checkpoints_.watch(control_.problem);
  const Duration leaving = leaving_for(now);
  if (view_ && leaving > leave_patience)
    return lost({ErrorCode::timed_out, "the round did not end while this device was waiting to leave"});
  switch (phase_) {
    case Phase::entering: return enter();
    case Phase::collecting: return collect();
    case Phase::synchronizing: return synchronize();
    case Phase::paying: return pay();
    case Phase::draining: return drain();
    case Phase::going_back: return roll_back();
    case Phase::ended: break;
  }
  return {.finished = true};
}

/// True if the device may enter the round: it has its assigned rows, `wait` has passed since the last round,
/// or it must stop. If the schedule pauses, it waits for its own rows, a peer, or the end of the pause.
bool Worker::may_enter(TimePoint now) {
  const auto& schedule = view_->session->plan().next;
  const std::size_t assigned = schedule.rows[view_->spec.rank];
  const std::size_t have = rows().batch().own_rows() + rows().waiting();
  if (now >= round_.times.last_ended + schedule.wait || hurries()) return true;
  if (schedule.rest) return have >= std::max<std::size_t>(1, assigned) || view_->session->peer_entered();
  return have >= std::min(assigned, rows().batch().rows_max());
}

Turn Worker::collect() {
  const TimePoint now = parts_.clock.now();
  if (view_->session->poll() == Progress::failed) return lost(view_->session->error());
  const auto& schedule = view_->session->plan().next;
  if (steps_locally()) return step_locally();
  if (!may_enter(now)) {
    parts_.status.state.store(schedule.rest ? NodeState::idle : NodeState::waiting);
    return {.wake_at = round_.times.last_ended + schedule.wait};
  }
  // Local steps that are not synchronized yet are its rows of this round.
  if (model().own().rows() == 0 && rows().fill(schedule.rows[view_->spec.rank], schedule.whole))
    model().invalidate();
  round_.times.entered = parts_.clock.now();
  round_.times.wait_seconds = to_seconds(round_.times.entered - round_.times.last_ended);
  parts_.status.state.store(NodeState::training);
  return compute_and_enter();
}

Turn Worker::compute_and_enter() {
  const bool is_new = !model().is_computed();
  if (is_new) inject_rows();
  if (auto computed = model().compute(rows().batch().view(), rows().batch().own_rows(), *parts_.state);
      !computed)
    return end(computed.error());
  if (is_new) {
    stream_.computed(model().report(), rows().batch().view(), rows().batch().own_rows());
    scores_.computed(model().report(), rows().batch().view(), rows().batch().own_rows());
    health_.computed(model(), rows().batch().view(), rows().batch().own_rows(), *parts_.state,
                     view_->session->plan().now.learning_rate_factor);
    measurements_.stepped(rows().batch().rows(), model().compute_seconds());
    offer_rows();
  }
  if (auto refused = refuse_nonfinite(); !refused) return end(refused.error());
  if (auto checked = check_delta(); !checked) return end(checked.error());
  const bool contributes = model().own().rows() > 0 || rows().batch().rows() > 0;
  if (contributes && model().finite() && !round_.delta_refused) health_.contributed();
  if (auto known = refresh_digest(); !known) return end(known.error());
  if (auto announced = rows().announce(model().finite()); !announced) return end(announced.error());
  round_.times.entered = parts_.clock.now();
  sync::Facts facts = my_facts(round_.times.entered);
  if (auto measured = measure(facts); !measured) return end(measured.error());
  // A peer that receives a request finishes its batch first; otherwise peers enter when their steps are made.
  const auto& entered_by = view_->session->plan().next;
  round_.times.due = round_.times.early ? round_.times.entered + entered_by.latest() / entered_by.steps()
                                        : round_.times.last_ended + entered_by.latest();
  round_.times.peers_due = round_.times.entered >= round_.times.due;
  send_rows();
  view_->session->begin_facts(facts, my_section(), model().contribution(),
                              round_.times.peers_due ? sync::Peers::due : sync::Peers::have_time);
  ++parts_.status.rounds;
  if (overlaps()) depart();
  phase_ = Phase::synchronizing;
  return again();
}

Turn Worker::synchronize() {
  if (!round_.times.peers_due && parts_.clock.now() >= round_.times.due) {
    round_.times.peers_due = true;
    view_->session->peers_are_due();
  }
  switch (view_->session->poll()) {
    case Progress::pending: return wait_for_peers();
    case Progress::failed: return lost(view_->session->error());
    case Progress::done: break;
  }
  parts_.decisions.write(view_->spec.number, view_->session->round() - 1, view_->session->table(),
                         view_->session->plan());
  parts_.decisions.finish_round(view_->session->policy_state());
  if (auto fits = check_announced(*view_->session->last_round(), view_->spec, parts_.state,
                                  rows().partitions(), config_.owner.topics);
      !fits)
    return lost(fits.error());
  if (auto received = receive_rows(); !received) return lost(received.error());
  if (auto done = carry_out(view_->session->plan().now); !done) return end(done.error());
  if (phase_ == Phase::paying) return again();
  view_->session->finish(false);
  return after_round(false);
}

/// Aggregating modes continue with the payload; all other modes finish their rows here.
Status Worker::carry_out(const sync::policy::Decision& decision) {
  if (model().departed() && decision.mode != Mode::delta) {
    undo_local_steps();
    return ok();
  }
  switch (decision.mode) {
    case Mode::gradients:
      if (view_->session->early() == sync::SpeculationOutcome::used) break;
      if (auto prepared = model().prepare_gradient(); !prepared) return prepared;
      break;
    case Mode::delta:
      if (view_->session->early() == sync::SpeculationOutcome::used || model().departed() ||
          model().is_prepared())
        break;
      if (auto prepared = model().prepare_delta(*parts_.state); !prepared) return prepared;
      break;
    case Mode::skip:
      clock_.looked_at(rows().batch().own_rows());
      keep(Fate::dry_run);
      stream_.heed_change();                         // aggregating devices do the same
      if (config_.dry_run) rows().forget_pending();  // a dry run never folds them
      return ok();
    case Mode::defer:
      if (!model().finite()) keep(Fate::dropped);
      return ok();
    case Mode::idle:
      if (!config_.dry_run && only_offsets_move(view_->session->table())) {
        if (auto folded = fold_offsets(); !folded) return folded;
        release(Fate::dropped);
        credit();
      } else if (rows().batch().own_rows() > 0) {
        keep(Fate::dropped);  // not finite on every device: dropped, announced later
      }
      return ok();
  }
  view_->session->begin_payload(model().contribution());
  phase_ = Phase::paying;
  return ok();
}

Turn Worker::pay() {
  switch (view_->session->poll()) {
    case Progress::pending: return wait_for_peers();
    case Progress::failed: return lost(view_->session->error());
    case Progress::done: break;
  }
  const auto applied = apply_agreed();
  if (!applied) return end(applied.error());
  view_->session->finish(applied.value());
  return after_round(model().own().ahead() > 0);
}

/// False if the agreed sum is not finite: its rows are dropped and nothing is applied.
Result<bool> Worker::apply_agreed() {
  const sync::Round& round = *view_->session->last_round();
  pass_on(round.plan().now.mode, view_->session->agreed());
  const StepParts step{config_.optimizer, parts_.device,      round.table,
                       round.plan().now,  round.state.memory, view_->spec.number};
  const auto made = parts_.state.advance<StepMade>(round.work, parts_.device, [&](AgreedState& next) {
    return make_step(next, step, view_->session->agreed());
  });
  if (!made) return made.error();
  rows().fold(!checkpoints_.saves());
  release(made.value().finite ? Fate::trained : Fate::dropped);
  credit();
  if (step.decision.mode != Mode::delta)
    model().follow_group();
  else if (!model().agreed(*parts_.state, made.value().finite, residual_.numbers().left()))
    undo_local_steps();
  if (made.value().finite) learn_of_streams();
  report_.stepped(made.value(), step.decision.mode);
  return made.value().finite;
}

/// Before the state changes: a device that copies it needs the same round.
void Worker::pass_on(Mode mode, const GradientView& sum) {
  if (parts_.donor == nullptr || !parts_.donor->gives()) return;
  const sync::Round& round = *view_->session->last_round();
  parts_.donor->applied({.view = view_->spec.number,
                         .mode = mode,
                         .learning_rate_factor = round.plan().now.learning_rate_factor,
                         .table = round.table,
                         .memory = round.state.memory},
                        sum);
}

/// Applies a round that only moves offsets.
Status Worker::fold_offsets() {
  const sync::Round& round = *view_->session->last_round();
  pass_on(Mode::idle, {});
  auto folded = parts_.state.advance<std::monostate>(round.work, parts_.device, [&](AgreedState& next) {
    fold_round(next, round.table, view_->spec.number, true);
    return ok();
  });
  if (folded) rows().fold(!checkpoints_.saves());
  return folded;
}

/// Finishes the rows of the batch and frees their slots.
void Worker::release(Fate fate) {
  report_.all_published(model().finite() ? fate : Fate::dropped, rows().batch().own_rows(),
                        rows().batch().view());
  // A dry run has no ledger.
  if (config_.dry_run && !model().finite())
    report_.credit({.nonfinite = rows().batch().own_rows()}, parts_.state->stamp.step);
  rows().release();
  model().release();
}

/// The round used rows but did not aggregate: the next aggregating round announces them again.
void Worker::keep(Fate fate) {
  rows().keep();
  release(fate);
}

Turn Worker::wait_for_peers() {
  if (const auto turn = step_ahead()) return *turn;
  return view_->session->wait() ? again() : later(peer_step);
}

/// `went_on`: local steps of the next interval were made during the synchronization.
Turn Worker::after_round(bool went_on) {
  report_.ended({*view_, *parts_.state, model().compute_seconds(),
                 clock_.seconds_since_entry(parts_.clock.now()), rows().waiting()},
                round_.times);
  scores_.show();
  measurements_.ended(view_->session->table(), view_->spec.rank, round_.times.sync_seconds);
  const auto& decision = view_->session->plan().now;
  if (decision.mode == Mode::defer) measurements_.round_deferred();
  const auto& next = view_->session->plan().next;
  parts_.status.sync_due_s.store(to_seconds(std::max(next.wait, next.latest())));
  if (decision.mode != Mode::idle)
    measurements_.norms().agreed();  // an unsuccessful request is not repeated immediately
  residual_.follow(*parts_.state);
  report_.kept(residual_.numbers());
  if (auto known = measure_state(); !known) return end(known.error());
  if (decision.checkpoint) checkpoints_.save(*parts_.state, rows().partitions());
  health_.follow_trial(*parts_.state, checkpoints_);
  round_.times.last_ended = parts_.clock.now();
  round_.times.early = false;
  round_.times.ahead_seconds = 0;
  if (!went_on) model().own().restart(round_.times.last_ended);
  round_.rate = {config_.session.policy, view_->session->policy_state()};
  // After every round: while a stream pauses, rounds make no steps, but the last model still needs
  // evaluation.
  parts_.snapshots.offer(parts_.state->model, parts_.state->stamp.step,
                         clock_.seconds_since_entry(round_.times.last_ended));
  const bool retreats = decision.retreat != sync::policy::Retreat::none;
  if (!decision.stop && decision.leaving.empty() && !decision.regroup && !retreats) {
    phase_ = Phase::collecting;
    return again();
  }
  parts_.status.state.store(retreats || decision.regroup ? NodeState::forming : NodeState::stopping);
  view_->session->begin_shutdown_barrier();
  phase_ = Phase::draining;
  return again();
}

}  // namespace rivulet::runtime
