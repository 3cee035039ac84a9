#include <algorithm>
#include <mutex>

#include "core/rng.h"
#include "sync/membership/cool_down.h"
#include "sync/membership/copies.h"
#include "sync/membership/log_membership.h"
#include "sync/membership/snapshot.h"

namespace rivulet::sync::membership {

namespace {

constexpr std::size_t reason_max = 300;  // bytes; invalid ones become three on the wire

}  // namespace

std::string make_nonce(const MembershipConfig& config) {
  const auto salt = static_cast<std::uint64_t>(config.hello.pid);
  Rng rng = Rng::derive(config.nonce_seed, "nonce." + config.hello.device, salt);
  std::string nonce;
  for (int i = 0; i < 32; ++i) nonce += "0123456789abcdef"[rng.below(16)];
  return nonce;
}

Status LogMembership::append(const ControlRecord& record) {
  auto bytes = encode(record, config_.job);
  if (!bytes) return bytes.error();
  return log_.append(bytes.value());
}

void LogMembership::notice_own(std::int64_t offset, const ControlRecord& record) {
  if (const auto* hello = std::get_if<Hello>(&record)) {
    if (hello->device == config_.hello.device) session_.read(offset, hello->nonce == config_.hello.nonce);
  } else if (const auto* ready = std::get_if<Ready>(&record)) {
    // Read back, counted or not: post_ready() decides again.
    if (ready->device == config_.hello.device && ready->session == session_.offset()) ready_.read_back();
  } else if (const auto* saved = std::get_if<Saved>(&record);
             saved != nullptr && saved->session == session_.offset()) {
    saved_.read(*saved);
  }
}

Status LogMembership::read_log() {
  auto read = reader_.read();
  const auto own = reader_.take_own();
  const auto lock = shared_.guard();
  for (const auto& [offset, record] : own) notice_own(offset, record);
  session_.read_stop(fold_.stopped_at);
  committed_ = fold_.committed;
  return read;
}

Status LogMembership::post_hello(TimePoint now) {
  if (!session_.owes_hello(now, config_.retry_after)) return ok();
  session_.sent_hello(now);
  config_.hello.has_state = next_ready_.stamp;
  return append(config_.hello);
}

/// The HELLO was refused: this process cannot replace the present session. That changes when the group
/// changes, or when the session is dead: a live one answers.
Status LogMembership::wait_for_place(TimePoint now) {
  AdmissionError why = cannot_replace(fold_, config_.hello);
  if (!why) return post_hello(now);
  const DeviceEntry& present = fold_.devices.at(config_.hello.device);
  if (present.last_seen > session_.refused_at()) {
    why.subject =
        why.why == WhyNot::foreign_state || why.why == WhyNot::earlier_state ? config_.job : why.subject;
    return refuse(ErrorCode::invalid_config, keeps_its_place(present.hello, why));
  }
  if (session_.waiting_for_place(now) < config_.takeover_wait) return ok();
  config_.hello.unheard_since = session_.refused_at();
  return post_hello(now);
}

/// Answers a process of the same id that could not replace this one and that checks whether this one is
/// alive.
Status LogMembership::answer(TimePoint now) {
  const auto me = fold_.devices.find(config_.hello.device);
  if (me == fold_.devices.end() || me->second.session != session_.offset()) return ok();
  if (!session_.owes_answer(me->second.last_seen, now, config_.close_wait)) return ok();
  session_.sent_answer(now);
  return in_view_ ? append(Close{config_.hello.device, session_.offset(), fold_.view.number})
                  : append_ready(now);
}

/// With enough READYs, or with a conflicting one, only live devices may count: all repeat their READYs.
bool LogMembership::ready_requested() const {
  const NextView& next = next_view(false);
  return next.error.why != WhyNot::missing || !next.rejected.empty() || outside(fold_, config_.hello.device);
}

Status LogMembership::post_ready(TimePoint now) {
  const auto it = fold_.devices.find(config_.hello.device);
  if (it == fold_.devices.end() || !ready_.may_send(now, config_.retry_after)) return ok();
  if (knocks_again(now) || request_waits(now, it->second)) return append_ready(now);
  if (is_ready(fold_, it->second) && says_otherwise(*it->second.ready)) return append_ready(now);
  if (is_live(fold_, it->second)) return ok();
  if (is_ready(fold_, it->second) && !ready_requested()) return ok();
  return append_ready(now);
}

/// Whether this device, which waits to join, checks that the group still trains, since all of it may have
/// died; or that it has cooled down, since only records move the log's clock.
bool LogMembership::knocks_again(TimePoint now) const {
  const auto me = fold_.devices.find(config_.hello.device);
  if (me == fold_.devices.end() || me->second.ready_at < 0) return false;
  if (is_cooling(fold_, me->second)) return now - ready_sent_ >= config_.takeover_wait;
  const bool answered = last_heard_of_view(fold_) > me->second.ready_at;
  return joining() && answered && now - ready_sent_ >= config_.knock_every;
}

/// Whether READYs of before the last HELLO still count although a second has passed, and the group has not
/// formed.
bool LogMembership::request_waits(TimePoint now, const DeviceEntry& me) const {
  constexpr Duration second = std::chrono::milliseconds(ReadyRequest::every_ms);
  return fold_.asked.due && is_ready(fold_, me) && ready_requested() && now - ready_sent_ >= second;
}

/// Whether the READY in the log is out of date: this device has got the group's state from a copy, or needs
/// another donor.
bool LogMembership::says_otherwise(const Ready& said) const {
  return said.stamp != next_ready_.stamp || said.copy.failed != next_ready_.copy.failed ||
         said.copy.donor != choose_donor();
}

/// The member that this device, while it waits to join, asks for a copy of the state; empty: none. Different
/// devices begin with different members; each failure moves on to the next.
std::string LogMembership::choose_donor() const {
  const auto me = fold_.devices.find(config_.hello.device);
  if (!joining() || !copies_first(next_ready_) || is_cooling(fold_, me->second)) return "";
  if (fold_.view.members.size() >= config_.hello.devices.max) return "";
  std::vector<std::string> open;
  for (const auto& id : fold_.view.members)
    if (is_open(fold_, fold_.devices.at(id))) open.push_back(id);
  if (open.empty()) return "";
  Rng rng = Rng::derive(config_.nonce_seed, "donor." + config_.hello.device);
  return open[(rng.below(open.size()) + next_ready_.copy.failed) % open.size()];
}

StateRequest LogMembership::request_of(const DeviceEntry& receiver) const {
  StateRequest request{{}, receiver.ready->copy.donor, receiver.hello.device};
  std::vector<std::string> both{request.donor, request.receiver};
  std::ranges::sort(both);
  request.link.number = fold_.view.number;
  request.link.token = static_cast<std::uint64_t>(receiver.copy_at);
  request.link.rank = both[0] == config_.hello.device ? 0 : 1;
  request.link.holders = std::vector<std::uint32_t>{both[0] == request.donor ? 0U : 1U};
  request.link.owners = std::vector<std::vector<std::string>>(2);
  request.link.members = std::move(both);
  return request;
}

std::optional<StateRequest> LogMembership::copy_to_give() const {
  const bool full = fold_.view.members.size() >= config_.hello.devices.max;
  if (!in_view_ || full || view_broken()) return std::nullopt;
  const DeviceEntry* first = nullptr;
  for (const auto& [id, device] : fold_.devices) {
    if (device.copy_at < 0 || device.ready->copy.donor != config_.hello.device) continue;
    if (is_of_last_view(fold_, device) || !is_open(fold_, device) || !is_ready(fold_, device)) continue;
    if (device.hello.config_hash != fold_.view.config_hash) continue;
    if (first == nullptr || device.copy_at < first->copy_at) first = &device;
  }
  return first == nullptr ? std::nullopt : std::optional(request_of(*first));
}

std::optional<StateRequest> LogMembership::copy_to_take() const {
  const auto me = fold_.devices.find(config_.hello.device);
  if (me == fold_.devices.end() || !joining() || me->second.copy_at < 0) return std::nullopt;
  const bool current = !says_otherwise(*me->second.ready) && me->second.ready->copy == next_ready_.copy;
  return current ? std::optional(request_of(me->second)) : std::nullopt;
}

Status LogMembership::append_ready(TimePoint now) {
  ready_.sent(now);
  ready_sent_ = now;
  next_ready_.copy.donor = choose_donor();
  const bool of_this_view = fold_.view.token == token_;
  const Departure members = of_this_view ? departure_ : Departure();
  next_ready_.lost = members.lost;
  next_ready_.unreached = members.unreached;
  next_ready_.accuses = members.accused;
  next_ready_.copied = members.copied;
  next_ready_.session = session_.offset();
  next_ready_.view = fold_.view.number + 1;
  next_ready_.rolls_back = config_.rollback_to == next_ready_.stamp;
  return append(next_ready_);
}

Status LogMembership::post_close(TimePoint now) {
  const NextView& next = next_view(true);
  const auto me = fold_.devices.find(config_.hello.device);
  const bool mine = me != fold_.devices.end() && me->second.session == session_.offset();
  const bool in =
      mine && std::find(next.devices.begin(), next.devices.end(), &me->second) != next.devices.end();
  if (!in || next.error) {
    closing_.cannot();
    return ok();
  }
  const StillMissing missing = still_missing(fold_, next, config_.hello.devices);
  if (missing == StillMissing::standing && last_heard_of_view(fold_) > me->second.ready_at) {
    closing_.must_not();  // the group trains
    return ok();
  }
  Closing::Candidate candidate{fold_.view.number + 1, next.devices.size(), -1};
  for (const auto* device : next.devices) candidate.newest = std::max(candidate.newest, device->ready_at);
  const auto place =
      static_cast<std::size_t>(std::ranges::find(next.devices, &me->second) - next.devices.begin());
  if (!closing_.due(candidate, place, now, {patience_with(missing), config_.close_wait, config_.retry_after}))
    return ok();
  closing_.sent(candidate, now);
  return append(Close{config_.hello.device, session_.offset(), candidate.number});
}

/// How long a view that can be closed waits for further devices.
Duration LogMembership::patience_with(StillMissing missing) const {
  switch (missing) {
    case StillMissing::nobody: break;
    case StillMissing::lost: return config_.lost_wait;
    case StillMissing::returning: return config_.return_wait;
    case StillMissing::starting: return config_.start_wait;
    case StillMissing::standing: return config_.takeover_wait;
  }
  return Duration(0);
}

/// After a HELLO from outside this view, the view's first member confirms that it is alive, so that the
/// newcomer is rejected instead of waiting forever; or, if it may join, does not form a view without this
/// one.
Status LogMembership::confirm_view(TimePoint now) {
  if (fold_.view.members.empty() || fold_.view.members.front() != config_.hello.device || view_broken())
    return ok();
  const std::int64_t said = std::max(static_cast<std::int64_t>(fold_.view.token), fold_.view.confirmed);
  const std::int64_t knock = config_.hello.devices.is_fixed() ? fold_.last_hello : last_knock(fold_);
  if (knock < said || !confirm_.may_send(now, config_.close_wait)) return ok();
  confirm_.sent(now);
  return append(Close{config_.hello.device, session_.offset(), fold_.view.number});
}

/// The first member regularly writes a snapshot of the fold. If other records interfere, it retries later. A
/// group too large for one record has no snapshots.
Status LogMembership::post_snap(TimePoint now) {
  const bool first = !fold_.view.members.empty() && fold_.view.members.front() == config_.hello.device;
  const std::int64_t since = std::max<std::int64_t>(fold_.snapped_at, fold_.run.began);
  if (!first || fold_.next_offset - since < snap_every || !snap_.may_send(now, config_.retry_after))
    return ok();
  snap_.sent(now);
  Snap snap{config_.hello.device, session_.offset(), fold_.next_offset, "", snapshot_of(fold_)};
  snap.hash = snapshot_hash(snap.fold);
  if (const auto bytes = encode(snap, config_.job)) return log_.append(bytes.value());
  return ok();
}

std::optional<ViewSpec> LogMembership::new_view() {
  const auto it = fold_.view.sessions.find(config_.hello.device);
  const bool mine = session_.known() && it != fold_.view.sessions.end() && it->second == session_.offset();
  if (!mine || fold_.view.token == token_) return std::nullopt;
  token_ = fold_.view.token;
  departure_ = {};
  next_ready_.copy.failed = 0;
  in_view_ = shared_.view_valid();
  next_ready_.reason = in_view_ ? "" : "the view was broken before it began";
  if (!in_view_) return std::nullopt;
  const auto& closed = fold_.view;
  return ViewSpec{closed.number, closed.token,  closed.members,      ranks_of({it->first}, closed.members)[0],
                  closed.target, closed.digest, closed.holder_ranks, closed.counts_from,
                  closed.owners};
}

Status LogMembership::act(TimePoint now) {
  if (!session_.known()) return session_.was_refused() ? wait_for_place(now) : post_hello(now);
  if (left_ || stop_requested()) return ok();
  if (auto said = answer(now); !said) return said;
  if (in_view_) {
    if (auto confirmed = confirm_view(now); !confirmed) return confirmed;
    if (const Saved* again = saved_.again(now, config_.retry_after))
      if (auto said = append(*again); !said) return said;
    return post_snap(now);
  }
  if (auto said = post_ready(now); !said) return said;
  return post_close(now);
}

Result<std::optional<ViewSpec>> LogMembership::poll(TimePoint now) {
  if (final_) return *final_;
  // Records read before an error count. An unavailable log only delays the protocol.
  if (auto read = read_log(); !read) return read.error();
  if (auto session = check_session(now); !session) return session.error();
  auto view = new_view();
  if (view) return view;
  if (auto known = check_state(); !known) return known.error();
  if (auto fits = check_conflict(now); !fits) return fits.error();
  if (auto acted = act(now); !acted) return acted.error();
  return view;
}

void LogMembership::announce_state(const Stamp& stamp, const std::string& digest, std::uint64_t rows) {
  next_ready_.stamp = stamp;
  next_ready_.rows = rows;
  next_ready_.digest = digest;
}

Status LogMembership::post_saved(const Stamp& stamp, const std::string& digest,
                                 const std::string& file_hash) {
  if (token_ == 0 || fold_.view.token != token_) return ok();
  const Saved saved{config_.hello.device, session_.offset(), fold_.view.number, stamp, digest, file_hash};
  return append(in_view_ ? saved_.announce(saved) : saved);
}

void LogMembership::leave_view(const std::string& reason, const Departure& members) {
  in_view_ = false;
  departure_ = members;
  saved_.leave_view();
  next_ready_.reason = reason.substr(0, reason_max);
}

void LogMembership::leave_group(const std::string& reason, Ends ends) {
  if (left_ || !session_.known()) return;
  left_ = true;
  // If the record is lost, the device looks killed.
  static_cast<void>(append(Leave{config_.hello.device, session_.offset(), reason.substr(0, reason_max),
                                 conflict_.cause_for_all(), ends}));
}

bool LogMembership::joiner_waits() const {
  return in_view_ && membership::joiner_waits(fold_, config_.hello.devices);
}

bool LogMembership::joining() const {
  if (in_view_ || !session_.known() || config_.hello.devices.is_fixed()) return false;
  const auto me = fold_.devices.find(config_.hello.device);
  return me != fold_.devices.end() && !is_of_last_view(fold_, me->second) && view_stands(fold_);
}

/// A group below its least size takes devices that cool down, too.
bool LogMembership::cooling_down() const {
  if (in_view_ || !session_.known() || below_min()) return false;
  const auto me = fold_.devices.find(config_.hello.device);
  return me != fold_.devices.end() && is_cooling(fold_, me->second);
}

bool LogMembership::below_min() const {
  const GroupSizes& sizes = config_.hello.devices;
  if (in_view_ || sizes.is_fixed() || fold_.view.config_hash.empty() || view_stands(fold_)) return false;
  return next_view(false).devices.size() < sizes.min;
}

bool LogMembership::view_broken() const {
  return in_view_ && (fold_.view.token != token_ || !shared_.view_valid());
}

Status LogMembership::set(std::uint64_t token, const std::string& key, std::span<const std::byte> value) {
  Addr addr{config_.hello.device, -1, token, key, {value.begin(), value.end()}};
  {
    const auto lock = shared_.guard();
    addr.session = session_.offset();
    const bool of_view = fold_.view.token == token && fold_.view.number > 0;
    if (!of_view && !is_end_of_copy(fold_, token, addr.device)) {
      return Error{ErrorCode::cancelled, "the view with token " + std::to_string(token) + " is over"};
    }
  }
  return append(addr);
}

std::vector<std::byte> LogMembership::get(std::uint64_t token, const std::string& key, bool& found) {
  const auto lock = shared_.guard();
  const auto it = fold_.addresses.find({token, key});
  found = it != fold_.addresses.end();
  return found ? it->second : std::vector<std::byte>();
}

std::unique_ptr<Membership> make_membership(const MembershipConfig& config, OrderedLog& log) {
  return std::make_unique<LogMembership>(config, log);
}

}  // namespace rivulet::sync::membership
