#include "runtime/train/worker.h"

#include <algorithm>

#include "runtime/state/announced.h"
#include "runtime/train/worker_meters.h"

namespace rivulet::runtime {
namespace {

constexpr Duration draining_step = std::chrono::milliseconds(20);
constexpr Duration look_at_log_every = std::chrono::milliseconds(250);
// Who is asked to leave is gone within 10 s, also while a peer hangs and sync.deadline is longer.
constexpr Duration leave_patience = std::chrono::seconds(8);

}  // namespace

Worker::Worker(const WorkerConfig& config, const Parts& parts)
    : config_(config),
      parts_(parts),
      meters_(std::make_unique<Meters>(parts.metrics, config.classification)),
      compressors_(parts.catalog.compressors),
      books_(parts.metrics, parts.status, parts.commits, config.owner.topics),
      prequential_(config.prequential_window) {}

Worker::~Worker() = default;

Result<std::unique_ptr<Worker>> Worker::create(const WorkerConfig& config, const Parts& parts) {
  std::unique_ptr<Worker> worker(new Worker(config, parts));
  if (auto allocated = worker->allocate(); !allocated) return allocated.error();
  if (auto held = worker->hold_state(); !held) return held.error();
  worker->created_ = worker->saved_at_ = parts.clock.now();
  worker->saved_ = parts.state->stamp;
  if (!parts.state->partitions.empty()) worker->stand_at_state();
  return worker;
}

Status Worker::allocate() {
  const RowShape& shape = parts_.rows.shape();
  const std::size_t rows_max = config_.session.rows_max;
  const std::size_t numbers = rows_max * (shape.columns() + shape.targets);
  const auto& layout = parts_.trainer.layout();
  const std::size_t contribution_bytes = layout.contribution() * bytes_of(layout.scalar);
  auto batch = parts_.device.allocate_shared(numbers * sizeof(float));
  if (!batch) return batch.error();
  auto contribution = parts_.device.allocate(contribution_bytes);
  if (!contribution) return contribution.error();
  auto agreed = parts_.device.allocate_shared(contribution_bytes);
  if (!agreed) return agreed.error();
  batch_memory_ = std::move(batch).value();
  contribution_memory_ = std::move(contribution).value();
  agreed_memory_ = std::move(agreed).value();
  contribution_ = contribution_memory_->view(layout.scalar, layout.contribution());
  agreed_scratch_ = agreed_memory_->view(layout.scalar, layout.contribution());
  const std::span<float> all = batch_memory_->view(Scalar::f32, numbers).as<float>();
  batch_ = std::make_unique<buffer::Batch>(all.first(rows_max * shape.columns()),
                                           all.subspan(rows_max * shape.columns()), shape, rows_max);
  meters_->model_parameters.set(static_cast<double>(layout.parameters));
  return ok();
}

Turn Worker::step() {
  const TimePoint now = parts_.clock.now();
  parts_.status.train_beat_ns.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  static_cast<void>(parts_.status.settle());  // what is not shown now is tried again with the next step
  if (phase_ != Phase::ended && !watch_membership(now))
    return {.work = 1, .finished = phase_ == Phase::ended};
  watch_saved();
  const Duration leaving = leaving_for(now);
  if (view_ && leaving > leave_patience)
    return lost({ErrorCode::timed_out, "the round did not end while this device was waiting to leave"});
  switch (phase_) {
    case Phase::forming: return form();
    case Phase::connecting: return connect();
    case Phase::adopting: return adopt();
    case Phase::collecting: return collect();
    case Phase::moving: return move_rows();
    case Phase::agreeing: return agree();
    case Phase::paying: return pay();
    case Phase::draining: return part();
    case Phase::ended: break;
  }
  return {.finished = true};
}

/// This device alone (a signal), or the whole job (STOP in the control log).
bool Worker::asked_to_end() const {
  return parts_.stop.load() > 0 || parts_.membership.stop_asked();
}

/// How long ago this device was asked to end; 0 if it was not.
Duration Worker::leaving_for(TimePoint now) {
  if (!asked_to_end()) return Duration(0);
  if (!asked_to_leave_) {
    asked_to_leave_ = now;
    // Whoever forms a view from now on does it without this device. After a STOP nobody forms one: LEAVE then
    // says that this device has ended.
    if (!parts_.membership.stop_asked())
      parts_.membership.leave_group("asked to end", sync::membership::Ends::device);
  }
  return now - *asked_to_leave_;
}

/// Reads the control log: at every step while a view is being made (its addresses are records), else now and
/// then. False: the phase has changed because of what it said.
bool Worker::watch_membership(TimePoint now) {
  if (phase_ == Phase::forming) return true;  // form() polls itself: a view may come out of it
  if (phase_ != Phase::connecting && now < next_membership_look_) return true;
  next_membership_look_ = now + (phase_ == Phase::draining ? draining_step : look_at_log_every);
  auto polled = parts_.membership.poll(now);
  meters_->count_ignored(parts_.membership.fold().ignored);
  if (!polled) control_words_ = polled.error().message;
  if (!polled && polled.error().code != ErrorCode::source_lost &&
      polled.error().code != ErrorCode::unavailable) {
    end(polled.error());
    return false;
  }
  if (phase_ == Phase::connecting && parts_.membership.view_broken()) {
    view_.reset();
    parts_.membership.leave_view("a member of the view has started again");
    phase_ = Phase::forming;
    return false;
  }
  return true;
}

/// A device enters with its assigned rows; at the latest next_wait after the last round ended, with what it
/// has; at once with none assigned; and when it must end. At rest it waits for its own rows, a peer, or the
/// time.
bool Worker::may_enter(TimePoint now) {
  const auto& plan = view_->session->plan();
  const std::size_t assigned = plan.next.rows[view_->spec.rank];
  const std::size_t have = batch_->own_rows() + parts_.rows.waiting();
  if (now >= round_ended_ + plan.next.wait || asked_to_end()) return true;
  if (plan.next.rest) return have >= std::max<std::size_t>(1, assigned) || view_->session->peer_entered();
  return have >= std::min(assigned, batch_->rows_max());
}

void Worker::fill_batch() {
  const auto& plan = view_->session->plan();
  const std::size_t assigned = std::min<std::size_t>(plan.next.rows[view_->spec.rank], batch_->rows_max());
  const std::size_t held = batch_->own_rows();
  const bool enough = held + parts_.rows.waiting() >= assigned;
  incomplete_ = !enough;
  if (held >= assigned || (!enough && plan.next.whole)) return;
  if (batch_->fill(parts_.rows, assigned - held) > 0) computed_ = false;
  incomplete_ = batch_->own_rows() < assigned;  // some of those that waited may have been forgotten
}

Turn Worker::collect() {
  const TimePoint now = parts_.clock.now();
  if (view_->session->poll() == Progress::failed) return lost(view_->session->error());
  if (!may_enter(now)) {
    parts_.status.state.store(view_->session->plan().next.rest ? NodeState::idle : NodeState::waiting);
    return {.wake_at = round_ended_ + view_->session->plan().next.wait};
  }
  fill_batch();
  entered_ = parts_.clock.now();
  wait_seconds_ = to_seconds(entered_ - round_ended_);
  parts_.status.state.store(NodeState::training);
  const auto& moves = view_->session->plan().next.moves;
  if (moves.empty()) return compute_and_enter();
  std::size_t lend = 0;
  for (const auto& m : moves)
    if (m.from == view_->spec.rank) lend += m.rows;
  view_->session->begin_moves(batch_->send_rows(std::min(lend, batch_->own_rows())));
  computed_ = false;
  phase_ = Phase::moving;
  return again();
}

Turn Worker::move_rows() {
  switch (view_->session->poll()) {
    case Progress::pending: return later(std::chrono::milliseconds(20));
    case Progress::failed: return lost(view_->session->error());
    case Progress::done: break;
  }
  for (const auto& guest : view_->session->received_rows())
    batch_->add_guest(guest.features, guest.targets, guest.tag);
  return compute_and_enter();
}

/// Gradient of the batch as it is now; false: the numbers are not finite.
Result<bool> Worker::compute() {
  const TimePoint before = parts_.clock.now();
  const auto& model = local_ ? *local_ : parts_.state->model;
  auto report = parts_.trainer.compute_gradients(model, batch_->view(), contribution_);
  if (!report) return report.error();
  parts_.device.charge({batch_->rows()});
  compute_seconds_ = to_seconds(parts_.clock.now() - before);
  report_ = report.value();
  computed_ = true;
  return report_.finite;
}

Turn Worker::compute_and_enter() {
  if (!computed_ || batch_->rows() == 0) {
    report_ = {};
    batch_finite_ = true;
    compute_seconds_ = 0;
    if (batch_->rows() > 0) {
      auto finite = compute();
      if (!finite) return end(finite.error());
      batch_finite_ = finite.value();
    }
  }
  if (!batch_finite_) {
    meters_->nonfinite_local.add(1);
    if (config_.stop_on_nonfinite)
      return end(Error{ErrorCode::numeric,
                       "a batch gave a loss or gradient that is not finite; train.on_nonfinite = \"stop\""});
  }
  if (auto known = refresh_digest(); !known) return end(known.error());
  if (auto announced = announce(); !announced) return end(announced.error());
  entered_ = parts_.clock.now();
  const sync::Facts facts = my_facts(entered_);
  if (view_->session->speculates() && facts.rows > 0)
    if (auto offered = prepare_gradient(); !offered) return end(offered.error());
  view_->session->begin_facts(facts, my_section(), mine_);
  parts_.status.rounds.fetch_add(1, std::memory_order_relaxed);
  phase_ = Phase::agreeing;
  return again();
}

Turn Worker::agree() {
  switch (view_->session->poll()) {
    case Progress::pending: return wait_for_peers();
    case Progress::failed: return lost(view_->session->error());
    case Progress::done: break;
  }
  ++round_in_view_;
  parts_.decisions.write(view_->spec.number, round_in_view_ - 1, view_->session->table(),
                         view_->session->plan());
  parts_.decisions.finish_round(view_->session->policy_state());
  if (auto fits = check_announced(*view_->session->last_round(), view_->spec, parts_.state,
                                  parts_.commits.partitions(), config_.owner.topics);
      !fits)
    return lost(fits.error());
  if (auto done = carry_out_plan(); !done) return end(done.error());
  if (phase_ == Phase::paying) return again();
  view_->session->finish(false);
  return after_round();
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
  return after_round();
}

Turn Worker::wait_for_peers() {
  return view_->session->wait() ? again() : later(std::chrono::milliseconds(20));
}

Turn Worker::after_round() {
  account_round();
  if (view_->session->plan().now.checkpoint) save_state();
  round_ended_ = parts_.clock.now();
  // After every round: while a stream pauses no round makes a step, and the last step is still to be
  // measured.
  parts_.snapshots.offer(parts_.state->model, parts_.state->stamp.step,
                         to_seconds(round_ended_ - training_since_));
  const auto& plan = view_->session->plan();
  if (!plan.now.stop && plan.now.leaving.empty()) {
    phase_ = Phase::collecting;
    return again();
  }
  parts_.status.state.store(NodeState::stopping);
  view_->session->begin_shutdown_barrier();
  phase_ = Phase::draining;
  return again();
}

Turn Worker::later(Duration d) {
  return {.wake_at = parts_.clock.now() + d};
}

}  // namespace rivulet::runtime
