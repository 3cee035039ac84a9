#include <algorithm>

#include "runtime/state/state_image.h"
#include "runtime/state/unclaimed.h"
#include "runtime/train/worker.h"
#include "runtime/train/worker_meters.h"

// How a worker gets into a view and out of it: forming, connecting, adopting, draining, and what a lost view
// leaves.
namespace rivulet::runtime {
namespace {

constexpr Duration forming_step = std::chrono::milliseconds(20);
constexpr Duration forming_pause_first = std::chrono::milliseconds(100);
constexpr Duration forming_pause_last = std::chrono::seconds(2);
constexpr Duration commit_patience = std::chrono::seconds(3);
// Who is asked to end is gone within 10 s, whatever its disk does.
constexpr Duration save_patience = std::chrono::milliseconds(9500);
constexpr Duration say_again_after = std::chrono::seconds(30);
// The slowest link that a state must get over.
constexpr double slowest_bytes_per_s = 0.5e6 / 8;

/// For people, who read no list of thousands.
std::string join(const std::vector<std::string>& words) {
  constexpr std::size_t named_max = 64;
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), named_max); ++i) text += (i == 0 ? "" : ", ") + words[i];
  if (words.size() > named_max) text += " and " + std::to_string(words.size() - named_max) + " more";
  return text;
}

}  // namespace

Turn Worker::form() {
  const TimePoint now = parts_.clock.now();
  if (asked_to_end()) return leave_alone();
  if (now < form_again_at_) return later(forming_step);
  auto polled = parts_.membership.poll(now);
  meters_->count_ignored(parts_.membership.fold().ignored);
  if (!polled) {
    // A broker that was there will be again; without it no view can form.
    const bool was_there =
        training_since_ != TimePoint::max() && polled.error().code == ErrorCode::unavailable;
    if (was_there || polled.error().code == ErrorCode::source_lost) return later(forming_step);
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
  if (!transport) {
    // An address that was there once may only be away, like the tunnel it belongs to.
    if (training_since_ == TimePoint::max()) return end(transport.error());
    return not_connected({ErrorCode::unavailable, transport.error().message});
  }
  view_->transport = std::move(transport).value();
  parts_.status.state.store(NodeState::connecting);
  parts_.status.say("connecting to " + join(view_->spec.members));
  phase_ = Phase::connecting;
  return again();
}

Turn Worker::connect() {
  if (asked_to_end()) return leave_alone();
  switch (view_->transport->connected()) {
    case Progress::pending: return later(std::chrono::milliseconds(2));
    case Progress::failed: return not_connected(view_->transport->error());
    case Progress::done: break;
  }
  const auto& layout = parts_.trainer.layout();
  view_->exchange = std::make_unique<sync::StateExchange>(
      *view_->transport, view_->spec, state_image_max(layout), parts_.clock.now() + adoption_patience());
  auto& exchange = *view_->exchange;
  if (exchange.gives()) {
    auto digest = digest_of(*parts_.state, parts_.device);
    if (!digest) return end(digest.error());
    exchange.give(encode_state(config_.owner, *parts_.state, digest.value()));
  }
  if (exchange.holds()) {
    settle_view();
  } else {
    exchange.take();
    parts_.status.say("adopting the state of the group, " + text_of(view_->spec.target));
  }
  phase_ = Phase::adopting;
  return again();
}

/// What a state may take to reach everybody who lacks it, over the slowest link there may be.
Duration Worker::adoption_patience() const {
  const auto& layout = parts_.trainer.layout();
  const std::size_t arrays = 1 + layout.optimizer_arrays.size();
  const std::size_t bytes = (arrays * layout.parameters + layout.buffers) * bytes_of(layout.scalar) + 65'536;
  const std::size_t lacking = view_->spec.world() - view_->spec.holders.size();
  return config_.peer_deadline + from_seconds(static_cast<double>(bytes * lacking) / slowest_bytes_per_s);
}

void Worker::settle_view() {
  view_->exchange->settle();
  view_->settling = true;
}

Turn Worker::adopt() {
  if (asked_to_end()) return leave_alone();
  switch (view_->exchange->poll(parts_.clock.now())) {
    case Progress::pending: return later(std::chrono::milliseconds(2));
    case Progress::failed: return not_adopted(view_->exchange->error());
    case Progress::done: break;
  }
  if (view_->settling) return enter_view();
  if (auto replaced = replace_state(view_->exchange->taken()); !replaced)
    return not_adopted(replaced.error());
  settle_view();
  return again();
}

/// The state becomes the one that the view starts from, and rows are used from where it stands.
Status Worker::replace_state(std::span<const std::byte> image) {
  auto decoded = decode_state(image, {config_.owner, parts_.trainer.layout(), parts_.device});
  if (!decoded) return decoded.error();
  AgreedState target = std::move(decoded).value().state;
  const auto digest = digest_of(target, parts_.device);
  if (!digest) return digest.error();
  if (target.stamp != view_->spec.target || digest.value().hex() != view_->spec.digest)
    return Error{ErrorCode::protocol, "the state that came is " + text_of(target.stamp) + " with digest " +
                                          digest.value().hex() + ", the view starts from " +
                                          text_of(view_->spec.target) + " with " + view_->spec.digest};
  parts_.log.write(Level::info, "state adopted",
                   {{"had", text_of(parts_.state->stamp)}, {"has", text_of(target.stamp)}});
  // Nobody may know anything of a partition any more, for no state that used it was kept: its rows are read
  // again from where the group once began, not from where the state that is given up stood.
  for (const auto& [partition, progress] : parts_.state->partitions)
    if (parts_.commits.owns(partition)) parts_.ledger.began(partition, progress.start);
  parts_.state.replace(std::move(target));
  uncommitted_.forget();
  stand_at_state();
  return hold_state();  // whatever becomes of this view: it is in the next READY
}

/// Rows that the adopted state has used are discarded, the others kept; what lies between is read again.
void Worker::stand_at_state() {
  pending_ = {};
  local_.reset();
  local_steps_ = 0;
  rows_since_sync_ = 0;
  next_offsets_.clear();
  for (const auto& [partition, progress] : parts_.state->partitions)
    if (parts_.commits.owns(partition)) next_offsets_[partition] = progress.next;
  buffer::Cursors from = parts_.ledger.begins();
  for (const auto& [partition, at] : next_offsets_) from[partition] = at;
  struct Held {
    std::optional<RowCursor> kept;  ///< oldest row that stays
    RowCursor next;                 ///< behind the newest
  };
  std::map<PartitionId, Held> held;  // what waits, as it lay there
  parts_.rows.discard([&](const RowTag& tag) {
    const auto& [partition, at] = tag.position;
    Held& rows = held[partition];
    rows.next = tag.next;
    const auto stands = from.find(partition);
    const bool used = stands != from.end() && at < stands->second;
    if (!used && !rows.kept) rows.kept = at;
    return used;
  });
  // The reader goes on behind the newest row: from the state's place to it nothing may be missing.
  const bool seamless = std::all_of(from.begin(), from.end(), [&](const auto& stands) {
    const auto& [partition, at] = stands;
    const auto rows = held.find(partition);
    if (rows == held.end() || parts_.ledger.splits(partition, at)) return false;
    if (rows->second.kept) return parts_.ledger.behind_runs(partition, at) == *rows->second.kept;
    return rows->second.next <= at && at <= parts_.ledger.behind_runs(partition, rows->second.next);
  });
  if (seamless) return parts_.ledger.settle(next_offsets_);
  generation_ = parts_.rewinds.ask(std::move(from));
  parts_.rows.forget_before(generation_);
  parts_.ingest.notify();
}

Status Worker::hold_state() {
  const auto digest = digest_of(*parts_.state, parts_.device);
  if (!digest) return digest.error();
  parts_.membership.hold_state(parts_.state->stamp, digest.value().hex(), parts_.state->rows);
  return ok();
}

/// Everybody holds the target: from here on it is a state of this view.
Turn Worker::enter_view() {
  view_->exchange.reset();  // and the image it may hold
  forming_pause_ = Duration(0);
  view_->session = std::make_unique<sync::SyncSession>(*view_->transport, view_->spec, config_.session,
                                                       parts_.catalog, compressors_, agreed_scratch_);
  if (auto begun = begin_lineage(); !begun) return end(begun.error());
  const auto& spec = view_->spec;
  parts_.decisions.enter_view({spec.number, spec.token, spec.members, spec.rank, spec.target, spec.digest,
                               config_.group, config_.session.policy, view_->session->policy_state()});
  meters_->states_taken.add(1);
  round_ended_ = parts_.clock.now();
  if (training_since_ == TimePoint::max()) {
    training_since_ = round_ended_;
    entry_ = {parts_.state->stamp.step, parts_.state->rows};
  }
  settle_limits();
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
  look_for_unclaimed();
  phase_ = Phase::collecting;
  return again();
}

/// Members and what they claim are the same for a whole view, and only they bring partitions into its state.
void Worker::look_for_unclaimed() {
  const auto& closed = parts_.membership.fold().view;
  if (closed.token != view_->spec.token) return;  // there is another view already
  auto unclaimed = unclaimed_partitions(parts_.state->partitions, closed.claims, config_.owner.topics);
  meters_->unclaimed.set(static_cast<double>(unclaimed.size()));
  if (!unclaimed.empty())
    parts_.log.write(Level::warn, "partitions that the group has trained are claimed by no device",
                     {{"partitions", join(unclaimed)}, {"do", "give them to one, source.partitions"}});
  parts_.status.set_unclaimed(std::move(unclaimed));
}

/// Limits count on the group's clock, so that lives of processes do not matter. Where that is not known (a
/// member is of an older build) they count from this process's own entry.
void Worker::settle_limits() {
  counts_from_ = view_->spec.counts_from.value_or(entry_);
  const auto& limit = config_.stop_after;
  if (limit.rows + limit.rounds == 0 || counts_from_.step == parts_.state->stamp.step) return;
  parts_.log.write(Level::info, "--stop-after counts on from where this run of the group began",
                   {{"rounds_so_far", std::to_string(parts_.state->stamp.step - counts_from_.step)},
                    {"rows_so_far", std::to_string(parts_.state->rows - counts_from_.rows)}});
}

/// From here on the state is one of this view; devices that share memory share it.
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
  if (view_->transport->gathering() == nullptr) return ok();
  const auto digest = parts_.state.digest(work, parts_.device);
  if (!digest) return digest.error();
  // Memory that has changed by itself must stay this device's own, so that the others see it.
  if (digest.value().hex() == spec.digest) parts_.state.join(work);
  return ok();
}

Turn Worker::not_adopted(Error error) {  // by value: the original dies with the view
  meters_->states_failed.add(1);
  return not_connected(std::move(error));
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

/// The last exchange: nobody closes before everybody is through, so no close looks like a death.
Turn Worker::part() {
  if (view_->session->poll() == Progress::pending) return later(std::chrono::milliseconds(20));
  // What this round leaves should be saved and committed before offsets are published for the last time.
  if (!last_is_committed() && parts_.clock.now() < round_ended_ + commit_patience)
    return later(std::chrono::milliseconds(20));
  const auto plan = view_->session->plan();
  const std::uint32_t me = view_->spec.rank;
  const bool mine = std::find(plan.now.leaving.begin(), plan.now.leaving.end(), me) != plan.now.leaving.end();
  if (plan.now.stop || mine) return end(std::nullopt);
  std::vector<std::string> who;
  who.reserve(plan.now.leaving.size());
  for (const auto rank : plan.now.leaving) who.push_back(view_->spec.members[rank]);
  const std::string left =
      "device " + join(who) + " left the group after round " + std::to_string(round_in_view_ - 1);
  if (!config_.reform)
    return end(Error{ErrorCode::peer_lost, left + "; start again to form a new one"}, true);
  view_.reset();
  put_batch_back();
  return form_again(left);
}

void Worker::put_batch_back() {
  batch_->put_back(parts_.rows);
  computed_ = false;
}

/// The view is over. Its rows go back, nothing of the unfinished round has touched state or gradient. That
/// the others are gone is no failure for a device that was leaving anyway.
Turn Worker::lost(Error error) {  // by value: the original dies with the view
  if (view_->session) meters_->rounds_failed.add(1);
  const bool stepped =
      phase_ == Phase::paying && view_->session->plan().now.mode == sync::policy::Mode::delta;
  view_.reset();
  put_batch_back();
  if (stepped)
    stand_at_state();  // the step of this round is in the private copy already: local steps are done anew
  const bool others = error.code == ErrorCode::peer_lost || error.code == ErrorCode::timed_out;
  if (others && !asked_to_end() && config_.reform) return form_again(error.message);
  error.message +=
      "; the unfinished round's rows are back in the buffer and the state is as it was after step " +
      std::to_string(parts_.state->stamp.step);
  if (!asked_to_end() || !others) return end(std::move(error));
  parts_.log.write(Level::warn, "left without the others", {{"why", error.message}});
  return leave_alone();
}

/// Asked to end outside a view: what this device holds and has not saved goes to its disk first. Nobody may
/// have it but those who hold it.
Turn Worker::leave_alone() {
  view_.reset();
  phase_ = Phase::forming;
  if (parts_.checkpoints == nullptr || config_.dry_run) return end(std::nullopt);
  if (!parts_.checkpoints->busy()) save_state();
  if (parts_.checkpoints->busy() && leaving_for(parts_.clock.now()) < save_patience)
    return later(forming_step);
  return end(std::nullopt);
}

/// The process outlives its views: source, buffer, state and pages stay while the group forms again.
Turn Worker::form_again(const std::string& why) {
  meters_->leave_view();
  parts_.status.world.store(0);
  parts_.log.write(Level::warn, "the view is over, forming the next one",
                   {{"why", why}, {"state", text_of(parts_.state->stamp)}});
  if (auto held = hold_state(); !held) return end(held.error());
  parts_.membership.leave_view(why);
  phase_ = Phase::forming;
  return again();
}

Turn Worker::end(std::optional<Error> error, bool leaver_lost) {
  using sync::membership::Ends;
  const bool together = view_ && view_->session && view_->session->plan().now.stop;
  const Ends ends = error ? Ends::nothing : together ? Ends::group : Ends::device;
  parts_.membership.leave_group(error ? error->message : "ended", ends);
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

}  // namespace rivulet::runtime
