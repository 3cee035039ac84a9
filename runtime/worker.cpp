#include "runtime/worker.h"

#include <algorithm>

#include "runtime/worker_meters.h"

namespace rivulet::runtime {
namespace {

constexpr Duration look_at_log_every = std::chrono::milliseconds(250);
constexpr Duration forming_step = std::chrono::milliseconds(20);
constexpr Duration forming_pause_first = std::chrono::milliseconds(100);
constexpr Duration forming_pause_last = std::chrono::seconds(2);
constexpr Duration say_again_after = std::chrono::seconds(30);
// Who is asked to leave is gone within 10 s, also while a peer hangs and sync.deadline is longer.
constexpr Duration leave_patience = std::chrono::seconds(8);

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& w : words) text += (text.empty() ? "" : ", ") + w;
  return text;
}

}  // namespace

Worker::Worker(const WorkerConfig& config, const Parts& parts)
    : config_(config),
      parts_(parts),
      meters_(std::make_unique<Meters>(parts.metrics)),
      codecs_(parts.catalog.codecs),
      prequential_(config.prequential_window) {}

Worker::~Worker() = default;

Result<std::unique_ptr<Worker>> Worker::create(const WorkerConfig& config, const Parts& parts) {
  std::unique_ptr<Worker> worker(new Worker(config, parts));
  if (auto allocated = worker->allocate(); !allocated) return allocated.error();
  worker->created_ = parts.clock.now();
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
  if (phase_ != Phase::ended && !watch_membership(now))
    return {.work = 1, .finished = phase_ == Phase::ended};
  if (view_ && leaving_for(now) > leave_patience)
    return lost({ErrorCode::timed_out, "the round did not end while this device was waiting to leave"});
  switch (phase_) {
    case Phase::forming: return form();
    case Phase::connecting: return connect();
    case Phase::collecting: return collect();
    case Phase::moving: return move_rows();
    case Phase::agreeing: return agree();
    case Phase::paying: return pay();
    case Phase::parting: return part();
    case Phase::ended: break;
  }
  return {.finished = true};
}

/// How long ago this device was asked to leave; 0 if it was not.
Duration Worker::leaving_for(TimePoint now) {
  if (parts_.stop.load() == 0) return Duration(0);
  if (!asked_to_leave_) asked_to_leave_ = now;
  return now - *asked_to_leave_;
}

/// Reads the control log: at every step while a view is being made (its addresses are records), else now and
/// then. False: the phase has changed because of what it said.
bool Worker::watch_membership(TimePoint now) {
  if (phase_ == Phase::forming) return true;  // form() polls itself: a view may come out of it
  if (phase_ != Phase::connecting && now < next_membership_look_) return true;
  next_membership_look_ = now + look_at_log_every;
  auto polled = parts_.membership.poll(now);
  if (!polled && polled.error().code != ErrorCode::source_lost &&
      polled.error().code != ErrorCode::unavailable) {
    end(polled.error());
    return false;
  }
  if (parts_.membership.view_broken() && phase_ == Phase::connecting) {
    view_.reset();
    parts_.membership.leave_view("a member of the view has started again");
    phase_ = Phase::forming;
    return false;
  }
  return true;
}

Turn Worker::form() {
  const TimePoint now = parts_.clock.now();
  if (parts_.stop.load() > 0) return end(std::nullopt);
  if (now < form_again_at_) return later(forming_step);
  auto polled = parts_.membership.poll(now);
  if (!polled) {
    if (polled.error().code == ErrorCode::source_lost) return later(forming_step);
    return end(polled.error());
  }
  if (!polled.value()) {
    const auto missing = parts_.membership.waiting_for();
    parts_.status.state.store(NodeState::forming);
    const std::string phrase = "forming: waiting for " + (missing.empty() ? "the log" : join(missing));
    if (phrase != parts_.status.phrase() || now >= say_again_at_) {
      parts_.log.write(Level::info, phrase);
      say_again_at_ = now + say_again_after;
    }
    parts_.status.say(phrase);
    return later(forming_step);
  }
  view_ = std::make_unique<View>();
  view_->spec = *polled.value();
  auto transport = parts_.connect(view_->spec, parts_.membership, parts_.wake);
  if (!transport) return end(transport.error());
  view_->transport = std::move(transport).value();
  parts_.status.state.store(NodeState::connecting);
  parts_.status.say("connecting to " + join(view_->spec.members));
  phase_ = Phase::connecting;
  return again();
}

Turn Worker::connect() {
  if (parts_.stop.load() > 0) return end(std::nullopt);
  switch (view_->transport->connected()) {
    case Progress::pending: return later(std::chrono::milliseconds(2));
    case Progress::failed: return not_connected(view_->transport->error());
    case Progress::done: break;
  }
  forming_pause_ = Duration(0);
  view_->session = std::make_unique<sync::SyncSession>(*view_->transport, view_->spec, config_.session,
                                                       parts_.catalog, codecs_, agreed_scratch_);
  round_ended_ = parts_.clock.now();
  if (training_since_ == TimePoint::max()) training_since_ = round_ended_;
  round_in_view_ = 0;
  meters_->enter_view(view_->spec);
  parts_.status.view.store(view_->spec.number);
  parts_.status.rank.store(view_->spec.rank);
  parts_.status.world.store(view_->spec.world());
  parts_.status.say("");
  parts_.log.write(Level::info, "group formed",
                   {{"view", std::to_string(view_->spec.number)},
                    {"members", join(view_->spec.members)},
                    {"rank", std::to_string(view_->spec.rank)}});
  phase_ = Phase::collecting;
  return again();
}

/// A view that does not connect is followed by the next one, after a pause that grows: each costs the control
/// topic a few records. Addresses that can never reach each other are an error at once.
Turn Worker::not_connected(Error error) {  // by value: the original dies with the view
  view_.reset();
  if (error.code == ErrorCode::invalid_config) return end(std::move(error));
  parts_.log.write(Level::warn, "could not connect the view, forming the next one",
                   {{"error", error.message}});
  parts_.membership.leave_view(error.message);
  phase_ = Phase::forming;
  form_again_at_ = parts_.clock.now() + forming_pause_;
  forming_pause_ = std::clamp(2 * forming_pause_, forming_pause_first, forming_pause_last);
  return again();
}

/// A device enters with its assigned rows; at the latest next_wait after the last round ended, with what it
/// has; at once with none assigned; and when it must end. At rest it waits for its own rows, a peer, or the
/// time.
bool Worker::may_enter(TimePoint now) {
  const auto& plan = view_->session->plan();
  const std::size_t assigned = plan.next_rows[view_->spec.rank];
  const std::size_t have = batch_->own_rows() + parts_.rows.waiting();
  if (now >= round_ended_ + plan.next_wait || parts_.stop.load() > 0) return true;
  if (plan.rest) return have >= std::max<std::size_t>(1, assigned) || view_->session->peer_entered();
  return have >= std::min(assigned, batch_->rows_max());
}

void Worker::fill_batch() {
  const auto& plan = view_->session->plan();
  const std::size_t assigned = std::min<std::size_t>(plan.next_rows[view_->spec.rank], batch_->rows_max());
  const std::size_t held = batch_->own_rows();
  const bool enough = held + parts_.rows.waiting() >= assigned;
  incomplete_ = !enough;
  if (held >= assigned || (!enough && plan.next_whole)) return;
  if (batch_->fill(parts_.rows, assigned - held) > 0) computed_ = false;
}

Turn Worker::collect() {
  const TimePoint now = parts_.clock.now();
  if (view_->session->poll() == Progress::failed) return lost(view_->session->error());
  if (!may_enter(now)) {
    parts_.status.state.store(view_->session->plan().rest ? NodeState::idle : NodeState::waiting);
    return {.wake_at = round_ended_ + view_->session->plan().next_wait};
  }
  fill_batch();
  entered_ = parts_.clock.now();
  wait_seconds_ = to_seconds(entered_ - round_ended_);
  parts_.status.state.store(NodeState::training);
  const auto& moves = view_->session->plan().next_moves;
  if (moves.empty()) return compute_and_enter();
  std::size_t lend = 0;
  for (const auto& m : moves)
    if (m.from == view_->spec.rank) lend += m.rows;
  view_->session->begin_moves(batch_->lend_out(std::min(lend, batch_->own_rows())));
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
  for (const auto& guest : view_->session->guests())
    batch_->add_guest(guest.features, guest.targets, guest.tag);
  return compute_and_enter();
}

/// Gradient of the batch as it is now; false: the numbers are not finite.
Result<bool> Worker::compute() {
  const TimePoint before = parts_.clock.now();
  const auto& model = local_ ? *local_ : parts_.state.model;
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
  entered_ = parts_.clock.now();
  const sync::Facts facts = my_facts(entered_);
  view_->session->begin_facts(facts, my_section());
  parts_.status.rounds.fetch_add(1, std::memory_order_relaxed);
  phase_ = Phase::agreeing;
  return again();
}

Turn Worker::agree() {
  switch (view_->session->poll()) {
    case Progress::pending: return later(std::chrono::milliseconds(20));
    case Progress::failed: return lost(view_->session->error());
    case Progress::done: break;
  }
  ++round_in_view_;
  parts_.decisions.write(view_->spec.number, round_in_view_ - 1, view_->session->table(),
                         view_->session->plan());
  if (auto fits = check_intervals(); !fits) return lost(fits.error());
  if (auto done = carry_out_plan(); !done) return end(done.error());
  if (phase_ == Phase::paying) return again();
  view_->session->finish(false);
  return after_round();
}

Turn Worker::pay() {
  switch (view_->session->poll()) {
    case Progress::pending: return later(std::chrono::milliseconds(20));
    case Progress::failed: return lost(view_->session->error());
    case Progress::done: break;
  }
  const auto applied = apply_agreed();
  if (!applied) return end(applied.error());
  view_->session->finish(applied.value());
  return after_round();
}

Turn Worker::after_round() {
  account_round();
  round_ended_ = parts_.clock.now();
  const auto& plan = view_->session->plan();
  if (!plan.stop && plan.leaving.empty()) {
    phase_ = Phase::collecting;
    return again();
  }
  parts_.status.state.store(NodeState::stopping);
  view_->session->begin_goodbye();
  phase_ = Phase::parting;
  return again();
}

/// The last exchange: nobody closes before everybody is through, so no close looks like a death.
Turn Worker::part() {
  if (view_->session->poll() == Progress::pending) return later(std::chrono::milliseconds(20));
  const auto plan = view_->session->plan();
  const std::uint32_t me = view_->spec.rank;
  const bool mine = std::find(plan.leaving.begin(), plan.leaving.end(), me) != plan.leaving.end();
  if (plan.stop || mine) return end(std::nullopt);
  std::vector<std::string> who;
  who.reserve(plan.leaving.size());
  for (const auto rank : plan.leaving) who.push_back(view_->spec.members[rank]);
  return end(
      Error{ErrorCode::peer_lost, "device " + join(who) + " left the group after round " +
                                      std::to_string(round_in_view_ - 1) + "; start again to form a new one"},
      true);
}

/// The view is over. Its rows go back, nothing of the unfinished round has touched state or gradient. That
/// the others are gone is no failure for a device that was leaving anyway.
Turn Worker::lost(Error error) {  // by value: the original dies with the view
  view_.reset();
  batch_->put_back(parts_.rows);
  computed_ = false;
  error.message +=
      "; the unfinished round's rows are back in the buffer and the state is as it was after step " +
      std::to_string(parts_.state.step);
  const bool others = error.code == ErrorCode::peer_lost || error.code == ErrorCode::timed_out;
  if (parts_.stop.load() == 0 || !others) return end(std::move(error));
  parts_.log.write(Level::warn, "left without the others", {{"why", error.message}});
  return end(std::nullopt);
}

Turn Worker::end(std::optional<Error> error, bool leaver_lost) {
  if (view_ && batch_ && batch_->own_rows() > 0) batch_->put_back(parts_.rows);
  view_.reset();
  meters_->leave_view();
  ending_ = {std::move(error), leaver_lost};
  parts_.status.state.store(ending_.error ? NodeState::failed : NodeState::stopping);
  if (ending_.error) parts_.status.say(ending_.error->message);
  parts_.status.rows_waiting.store(parts_.rows.waiting(), std::memory_order_relaxed);
  phase_ = Phase::ended;
  return {.work = 1, .finished = true};
}

Turn Worker::later(Duration d) {
  return {.wake_at = parts_.clock.now() + d};
}

}  // namespace rivulet::runtime
