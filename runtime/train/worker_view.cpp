#include <algorithm>

#include "runtime/process/topic_name.h"
#include "runtime/state/round_update.h"
#include "runtime/train/worker.h"

// Entering and leaving views, and stopping a worker.
namespace rivulet::runtime {
namespace {

constexpr Duration leaving_step = std::chrono::milliseconds(20);
constexpr Duration look_at_log_every = std::chrono::milliseconds(250);
constexpr Duration commit_patience = std::chrono::seconds(3);
// Newcomers interrupt a group that has enough devices at most this often.
constexpr Duration regroup_every = std::chrono::seconds(10);
constexpr Duration regroup_pause_first = std::chrono::seconds(1);
constexpr Duration regroup_pause_last = std::chrono::minutes(5);
// A device that is requested to stop exits within 10 s, even if its disk hangs.
constexpr Duration save_patience = std::chrono::milliseconds(9500);

}  // namespace

/// True if this device (by a signal) or the whole job (by a STOP in the control topic) is requested to stop.
bool Worker::end_requested() const {
  return parts_.stop.load() > 0 || parts_.membership.stop_requested();
}

/// A device that ends waits for no rows, except in the round in which it sends its residual: without rows no
/// device sends anything.
bool Worker::hurries() const {
  return end_requested() && !view_->session->plan().next.flush;
}

/// Returns the time since this device was requested to stop; 0 if it was not.
Duration Worker::leaving_for(TimePoint now) {
  if (!end_requested()) return Duration(0);
  if (!control_.leave_requested) {
    control_.leave_requested = now;
    // Excludes this device from the next views. After a STOP no view is formed: LEAVE reports that this
    // device has stopped.
    if (!parts_.membership.stop_requested())
      parts_.membership.leave_group("stop requested", sync::membership::Ends::device);
  }
  return now - *control_.leave_requested;
}

/// Reads the control topic: at every step while connecting (addresses are records), else at intervals.
/// Returns false if the phase has changed.
bool Worker::watch_membership(TimePoint now) {
  const bool entering = phase_ == Phase::entering;
  if (entering && entry_.stage() == ViewEntry::Stage::forming) return true;  // its own poll may return a view
  const bool connecting = entering && entry_.stage() == ViewEntry::Stage::connecting;
  if (!connecting && now < control_.next_look) return true;
  control_.next_look = now + (phase_ == Phase::draining ? leaving_step : look_at_log_every);
  auto polled = parts_.membership.poll(now);
  report_.metrics().count_ignored(parts_.membership.fold().ignored);
  if (!polled) control_.problem = polled.error().message;
  if (!polled && polled.error().code != ErrorCode::source_lost &&
      polled.error().code != ErrorCode::unavailable) {
    end(polled.error());
    return false;
  }
  if (connecting && parts_.membership.view_broken()) {
    ++parts_.status.view_changes[ViewEnd::not_connected];
    entry_.restart("a member of the view has restarted");
    return false;
  }
  const bool in_round =
      phase_ == Phase::collecting || phase_ == Phase::synchronizing || phase_ == Phase::paying;
  if (in_round && parts_.membership.fold().view.number > view_->spec.number) {
    lost({ErrorCode::peer_lost, "the other devices have formed a view without this one"}, true);
    return false;
  }
  if (in_round && parts_.donor != nullptr)
    if (auto given = parts_.donor->follow(parts_.membership.copy_to_give(), *parts_.state); !given)
      parts_.log.write(Level::warn, "the state cannot be copied", {{"why", given.error().message}});
  return true;
}

/// Whether to end this view so that devices which wait can join: at once below the usual number of devices.
bool Worker::regroups(TimePoint now) const {
  const bool copied = parts_.donor != nullptr && parts_.donor->nearly_done();
  if (!copied && !parts_.membership.joiner_waits()) return false;
  const bool few = view_->spec.world() < config_.session.policy.devices;
  return now >= control_.view_since + std::max(control_.regroup_pause, few ? Duration(0) : regroup_every);
}

/// A newcomer that cannot connect must not interrupt the group again and again.
void Worker::note_world(std::uint32_t world) {
  const bool failed = control_.regrouped && world <= control_.world;
  control_.regroup_pause =
      failed ? std::clamp(2 * control_.regroup_pause, regroup_pause_first, regroup_pause_last) : Duration(0);
  control_.world = world;
  control_.regrouped = false;
}

Turn Worker::enter() {
  if (end_requested()) return leave_alone();
  auto outcome = entry_.step(clock_.entered());
  if (outcome.error) return end(std::move(outcome.error));
  if (!outcome.entered) return outcome.turn;
  view_ = std::move(outcome.entered);
  return begin_rounds();
}

/// All devices hold the target: from now on it is a state of this view.
Turn Worker::begin_rounds() {
  if (rows().own(partitions_of(view_->spec.owners[view_->spec.rank], config_.owner.topics)))
    undo_local_steps();  // another device may own some of their rows now
  view_->session = std::make_unique<sync::SyncSession>(*view_->transport, view_->spec, config_.session,
                                                       parts_.catalog, residual_.numbers(),
                                                       memory_.agreed_scratch, parts_.state->controllers);
  measurements_.begin(view_->session->fact_fields());
  injected_rows_.begin();
  health_.begin_view();
  model().sketch(measurements_.requests_sketches());
  resolve_residual();
  if (auto begun = begin_lineage(); !begun) return end(begun.error());
  residual_.follow(*parts_.state);
  const auto& spec = view_->spec;
  parts_.decisions.enter_view({spec.number, spec.token, spec.members, spec.rank, spec.target, spec.digest,
                               config_.group, config_.session.policy, view_->session->policy_state()});
  report_.metrics().states_taken.add(1);
  credit();  // other devices may have synchronized on rows of this device
  round_.times.last_ended = parts_.clock.now();
  round_.times.early = false;
  round_.times.ahead_seconds = 0;
  control_.view_since = round_.times.last_ended;
  note_world(spec.world());
  checkpoints_.enter_view(spec.number);
  model().own().restart(round_.times.last_ended);
  clock_.enter_view(round_.times.last_ended, spec, *parts_.state, parts_.log);
  round_.rate = {config_.session.policy, view_->session->policy_state()};
  report_.enter_view(spec, view_->session->controllers());
  parts_.status.set_phrase("");
  parts_.log.write(Level::info, "group formed",
                   {{"view", std::to_string(spec.number)},
                    {"members", listed(spec.members)},
                    {"rank", std::to_string(spec.rank)}});
  show_claims();
  phase_ = Phase::collecting;
  return again();
}

/// Resolves whether the view's state includes the contribution of an unfinished round.
void Worker::resolve_residual() {
  const double lost = residual_.resolve(view_->spec.target, *parts_.state, model().contribution());
  if (lost == 0) return;
  report_.metrics().residual_lost.add(lost);
  parts_.log.write(Level::warn, "the residual belonged to a different state and was discarded",
                   {{"norm", std::to_string(lost)}});
}

/// From now on the state belongs to this view; devices with common memory share it.
Status Worker::begin_lineage() {
  const auto& spec = view_->spec;
  SharedWork& work = view_->session->last_round()->work;
  if (parts_.membership.fold().rules.restamp) {
    auto stamped = parts_.state.advance<std::monostate>(work, parts_.device, [&](AgreedState& next) {
      next.stamp.lineage = spec.number;
      return ok();
    });
    if (!stamped) return stamped;
  }
  if (!work.shared()) return ok();
  const auto digest = parts_.state.digest(work, parts_.device);
  if (!digest) return digest.error();
  // Does not share corrupted memory: the other devices must detect the corruption.
  if (digest.value().hex() == spec.digest) parts_.state.join(work);
  return ok();
}

/// Owners are the same for a whole view, and only owners add partitions to its state.
void Worker::show_claims() {
  GroupClaims claims{.known = true, .claimed = {}, .trained = {}};
  for (const auto& partitions : view_->spec.owners)
    claims.claimed.insert(claims.claimed.end(), partitions.begin(), partitions.end());
  for (const auto& [id, progress] : parts_.state->partitions)
    claims.trained.push_back(text_of(id, config_.owner.topics));
  parts_.status.set_claims(std::move(claims));
}

/// Whether the group may still commit the last state of this view.
bool Worker::last_state_may_be_committed() const {
  const bool view_over = parts_.membership.fold().view.number > view_->spec.number;
  return !view_over || checkpoints_.busy() || !checkpoints_.is_saved(*parts_.state);
}

/// The shutdown barrier: no device closes before all have passed it, so that no close looks like a failure.
Turn Worker::drain() {
  if (view_->session->poll() == Progress::pending) return later(leaving_step);
  const sync::policy::Decision decision = view_->session->plan().now;
  const bool retreats = decision.retreat != sync::policy::Retreat::none;
  const bool ends = decision.stop || std::ranges::count(decision.leaving, view_->spec.rank) > 0;
  // The last state should be saved and committed before the last offsets are committed. Devices that stay do
  // not wait for it.
  if (ends && !retreats && !checkpoints_.last_is_committed(*parts_.state, rows().partitions()) &&
      last_state_may_be_committed() && parts_.clock.now() < round_.times.last_ended + commit_patience)
    return later(leaving_step);
  if (retreats) return retreat();
  if (ends) {
    if (!decision.stop) note_left_residual();
    return end(std::nullopt);
  }
  std::vector<std::string> who;
  who.reserve(decision.leaving.size());
  for (const auto rank : decision.leaving) who.push_back(view_->spec.members[rank]);
  const std::string round = std::to_string(view_->session->round() - 1);
  const std::string why = who.empty() ? "devices join the group after round " + round
                                      : "device " + listed(who) + " left the group after round " + round;
  if (!config_.reform && !who.empty())
    return end(Error{ErrorCode::peer_lost, why + "; restart the device to form a new view"}, true);
  control_.regrouped = decision.regroup;
  view_.reset();
  put_batch_back();
  return form_again(who.empty() ? ViewEnd::joined : ViewEnd::left, why);
}

/// The group continues without this device, so what it has not sent is lost.
void Worker::note_left_residual() {
  const double lost = residual_.numbers().norm();
  if (!config_.session.policy.changes_size || lost == 0) return;
  report_.metrics().residual_lost.add(lost);
  parts_.log.write(Level::warn, "this device left before all of its residual was sent",
                   {{"norm", std::to_string(lost)}});
}

void Worker::put_batch_back() {
  rows().put_back();
  model().invalidate();
}

/// The view is over. Puts its rows back; the unfinished round has changed neither state nor gradient. A
/// leaving device ignores lost peers. A wrong state or message ends the view for all, and no device unless
/// the others accuse it a second time. `left_out`: the others go on without this device.
Turn Worker::lost(Error error, bool left_out) {  // by value: the view owns the original
  if (view_ && view_->session) report_.metrics().rounds_failed.add(1);
  const auto members = view_ ? departure_after(error, view_->spec) : sync::membership::Departure();
  view_.reset();
  entry_.drop_view();
  put_batch_back();
  // Local steps of the next round are in the private copy already: undoes all of them.
  if (model().departed()) undo_local_steps();
  const bool others = error.code == ErrorCode::peer_lost || error.code == ErrorCode::timed_out;
  const bool wrong = error.code == ErrorCode::protocol || error.code == ErrorCode::diverged;
  const bool goes_on = !end_requested() && config_.reform;
  const ViewEnd reason = left_out ? ViewEnd::left_out : wrong ? ViewEnd::wrong : ViewEnd::lost;
  if (goes_on && (others || (wrong && !error.blamed.empty())))
    return form_again(reason, error.message, members);
  if (goes_on && error.code == ErrorCode::diverged) return reload_committed(error);
  error.message +=
      "; the rows of the unfinished round are back in the buffer, and the state is the one after step " +
      std::to_string(parts_.state->stamp.step);
  if (!end_requested() || !others) return end(std::move(error));
  parts_.log.write(Level::warn, "left before the round ended", {{"why", error.message}});
  return leave_alone();
}

/// Stops outside a view. First saves an unsaved state, since other devices may not have it.
Turn Worker::leave_alone() {
  view_.reset();
  entry_.drop_view();
  phase_ = Phase::entering;
  if (!checkpoints_.saves() || config_.dry_run) return end(std::nullopt);
  if (!checkpoints_.busy()) checkpoints_.save(*parts_.state, rows().partitions());
  if (checkpoints_.busy() && leaving_for(parts_.clock.now()) < save_patience) return later(leaving_step);
  return end(std::nullopt);
}

/// The process outlives its views: source, buffer, state and pages stay while the group forms again.
Turn Worker::form_again(ViewEnd reason, const std::string& why, const sync::membership::Departure& members) {
  parts_.status.world = 0;
  parts_.log.write(Level::warn, "the view has ended; forming the next one",
                   {{"why", why}, {"state", text_of(parts_.state->stamp)}});
  parts_.status.end_view(reason, why);
  if (auto held = entry_.announce_state(); !held) return end(held.error());
  auto departure = members;
  if (parts_.donor != nullptr) departure.copied = parts_.donor->end(parts_.state->stamp);
  entry_.restart(why, departure);
  phase_ = Phase::entering;
  return again();
}

Turn Worker::end(std::optional<Error> error, bool leaver_lost) {
  using sync::membership::Ends;
  const bool together = view_ && view_->session && view_->session->plan().now.stop;
  const Ends ends = error ? Ends::nothing : together ? Ends::group : Ends::device;
  parts_.membership.leave_group(error ? error->message : "ended", ends);
  if (view_ && rows().batch().own_rows() > 0) rows().put_back();
  view_.reset();
  entry_.drop_view();
  parts_.status.world = 0;
  ending_ = {std::move(error), leaver_lost};
  parts_.status.state.store(ending_.error ? NodeState::failed : NodeState::stopping);
  if (ending_.error) parts_.status.set_phrase(ending_.error->message);
  parts_.status.rows_waiting = rows().waiting();
  phase_ = Phase::ended;
  return {.work = 1, .finished = true};
}

}  // namespace rivulet::runtime
