#include "sync/membership/membership.h"

#include <algorithm>
#include <mutex>

#include "core/rng.h"
#include "sync/membership/describe.h"
#include "sync/membership/shared_fold.h"
#include "sync/membership/snapshot.h"

namespace rivulet::sync::membership {

namespace {

constexpr std::size_t reason_max = 300;  // bytes; a bad one may become three on the wire

/// A record on its way into the log: it exists when it is read back, and may have been lost.
struct InFlight {
  bool active = false;
  TimePoint since{};
};

std::string make_nonce(const MembershipConfig& config) {
  const auto salt = static_cast<std::uint64_t>(config.hello.pid);
  Rng rng = Rng::derive(config.nonce_seed, "nonce." + config.hello.device, salt);
  std::string nonce;
  for (int i = 0; i < 32; ++i) nonce += "0123456789abcdef"[rng.below(16)];
  return nonce;
}

class LogMembership final : public Membership {
 public:
  LogMembership(const MembershipConfig& config, OrderedLog& log)
      : config_(config),
        log_(log),
        own_fold_(config.shared_fold == nullptr ? std::make_unique<SharedFold>(log, config.job, config.rules)
                                                : nullptr),
        shared_(own_fold_ ? *own_fold_ : *config.shared_fold),
        reader_(shared_, config.hello.device) {
    config_.hello.nonce = make_nonce(config);
  }

  Result<std::optional<ViewSpec>> poll(TimePoint now) override;
  void hold_state(const Stamp& stamp, const std::string& digest) override;
  void leave_view(const std::string& reason) override;
  Status say_saved(const Stamp& stamp, const std::string& digest, const std::string& file_hash) override;
  [[nodiscard]] bool announcing() const override { return saved_.has_value(); }
  void leave_group(const std::string& reason) override;
  [[nodiscard]] bool stop_asked() const override { return session_ >= 0 && stopped_at_ > session_; }
  [[nodiscard]] bool view_broken() const override;
  [[nodiscard]] std::vector<std::string> waiting_for() const override;
  [[nodiscard]] const Committed& committed() const override { return committed_; }
  [[nodiscard]] const Fold& fold() const override { return fold_; }

  Status set(std::uint64_t token, const std::string& key, std::span<const std::byte> value) override;
  std::vector<std::byte> get(std::uint64_t token, const std::string& key, bool& found) override;

 private:
  Status read_log();
  void notice_own(std::int64_t offset, const ControlRecord& record);
  Status check_session();
  Status refuse(ErrorCode code, const std::string& why);
  Status check_state();
  Status check_conflict(TimePoint now);
  Status act(TimePoint now);
  Status say_hello(TimePoint now);
  Status say_ready(TimePoint now);
  Status say_close(TimePoint now);
  Status confirm_view();
  Status say_snap(TimePoint now);
  Status say_saved_again(TimePoint now);
  std::optional<ViewSpec> new_view();
  [[nodiscard]] bool may_send(const InFlight& record, TimePoint now) const;
  [[nodiscard]] bool ready_is_asked_for() const;
  [[nodiscard]] std::string obstacle(bool only_live) const;
  [[nodiscard]] const NextView& next_view(bool only_live) const {
    return shared_.next_view(only_live, config_.hello.devices);
  }
  Status append(const ControlRecord& record);

  MembershipConfig config_;
  OrderedLog& log_;
  const std::unique_ptr<SharedFold> own_fold_;
  SharedFold& shared_;
  SharedFold::Reader reader_;
  const Fold& fold_ = shared_.fold();  // guarded, as session_ is: set() and get() of other threads read them
  std::int64_t session_ = -1;
  std::int64_t stopped_at_ = -1;  // as of the last poll()
  Committed committed_;           // same
  std::uint64_t token_ = 0;       // of the view handed out last
  bool in_view_ = false;
  bool left_ = false;
  Stamp stamp_;         // of the state held
  std::string digest_;  // same
  std::string reason_;  // why the last view was left
  InFlight hello_, ready_, snap_, saved_sent_;
  std::optional<Saved> saved_;  // said last in this view and not read back
  TimePoint closable_since_{};
  bool closable_ = false;
  InFlight close_;
  std::pair<std::uint64_t, std::int64_t> close_for_{0, -1};  // view and newest HELLO the CLOSE was sent for
  std::int64_t confirmed_for_ = -1;                          // newest HELLO the view was confirmed for
  bool in_conflict_ = false;
  std::string conflict_;  // what it is
  TimePoint conflict_since_{};
  std::optional<Error> final_;
};

bool LogMembership::may_send(const InFlight& record, TimePoint now) const {
  return !record.active || now - record.since >= config_.retry_after;
}

Status LogMembership::append(const ControlRecord& record) {
  auto bytes = encode(record, config_.job);
  if (!bytes) return bytes.error();
  return log_.append(bytes.value());
}

void LogMembership::notice_own(std::int64_t offset, const ControlRecord& record) {
  if (const auto* hello = std::get_if<Hello>(&record)) {
    const bool own = hello->device == config_.hello.device && hello->nonce == config_.hello.nonce;
    if (own && session_ < 0) session_ = offset;
  } else if (const auto* ready = std::get_if<Ready>(&record)) {
    // Read back, counted or not: say_ready() decides anew.
    if (ready->device == config_.hello.device && ready->session == session_) ready_.active = false;
  } else if (const auto* saved = std::get_if<Saved>(&record); saved != nullptr && saved_) {
    if (saved->session == session_ && saved->stamp == saved_->stamp) saved_.reset();
  }
}

Status LogMembership::read_log() {
  auto read = reader_.read();
  const auto own = reader_.take_own();
  const auto lock = shared_.guard();
  for (const auto& [offset, record] : own) notice_own(offset, record);
  stopped_at_ = fold_.stopped_at;
  committed_ = fold_.committed;
  return read;
}

/// Final: every later poll() says the same.
Status LogMembership::refuse(ErrorCode code, const std::string& why) {
  final_ = Error{code, why};
  return *final_;
}

Status LogMembership::check_session() {
  if (session_ < 0) return ok();
  const auto it = fold_.devices.find(config_.hello.device);
  if (it != fold_.devices.end() && it->second.session == session_) {
    if (it->second.contested < session_) return ok();
    return refuse(ErrorCode::superseded, contested_device(it->second));
  }
  if (it != fold_.devices.end() && it->second.session > session_) {
    const Hello& newer = it->second.hello;
    leave_group("superseded");  // shows the log that both lived
    return refuse(ErrorCode::superseded, "a newer session of device " + config_.hello.device +
                                             " was started on host " + newer.host + " (pid " +
                                             std::to_string(newer.pid) + ") and goes on in its place");
  }
  if (!config_.hello.new_run || stop_asked()) return ok();
  return refuse(ErrorCode::invalid_config, why_no_new_run(fold_, config_.job, config_.hello.device));
}

/// A state from a view that this log has never seen, or from before a new run: the folder and the topic do
/// not belong together. Nobody would believe its READY.
Status LogMembership::check_state() {
  if (session_ < 0) return ok();
  if (!shared_.reader().understands()) {
    return refuse(ErrorCode::invalid_config,
                  "the control topic of job " + config_.job + " begins at offset " +
                      std::to_string(shared_.reader().first_offset()) +
                      ": its oldest records are gone, and with them who is in the group; no later record "
                      "says it again. It must keep all (retention.ms = -1, retention.bytes = -1)");
  }
  const std::string state = "the saved state " + text_of(stamp_) + " of " + config_.hello.device;
  if (stamp_.lineage > fold_.view.number) {
    return refuse(ErrorCode::invalid_config, state + " is of another run: the control topic of job " +
                                                 config_.job + " knows " + std::to_string(fold_.view.number) +
                                                 " views. To start over, start every device with --new-run");
  }
  if (is_of_run(fold_, stamp_)) return ok();
  return refuse(ErrorCode::invalid_config,
                state + " is of an earlier run: run " + std::to_string(fold_.run.number) + " of job " +
                    config_.job + " began after view " + std::to_string(fold_.run.views_before) +
                    ". Start this device with --new-run, too: its old checkpoints are kept aside");
}

/// What keeps the ready devices (`only_live`: the live ones) from ever being a group.
std::string LogMembership::obstacle(bool only_live) const {
  const NextView& next = next_view(only_live);
  std::string text = conflict(fold_, config_.hello.device, next);
  return text.empty() ? next.lost : text;
}

/// A conflict is an error only after it lasted, so that a device which is just being replaced does not end
/// the others. It goes on lasting while its devices are asked to show again that they live.
Status LogMembership::check_conflict(TimePoint now) {
  const std::string text = session_ < 0 || in_view_ ? "" : obstacle(true);
  if (text.empty()) {
    if (in_conflict_ && somebody_left_for(fold_, conflict_))
      return refuse(ErrorCode::invalid_config, conflict_);
    if (session_ < 0 || in_view_ || obstacle(false).empty()) in_conflict_ = false;
    return ok();
  }
  conflict_ = text;
  if (!in_conflict_) conflict_since_ = now;
  in_conflict_ = true;
  if (now - conflict_since_ < config_.mismatch_grace) return ok();
  return refuse(ErrorCode::invalid_config, text);
}

Status LogMembership::say_hello(TimePoint now) {
  if (!may_send(hello_, now)) return ok();
  hello_ = {true, now};
  return append(config_.hello);
}

/// With enough READYs, or with one that does not fit, only those that live may count: everybody repeats its
/// own.
bool LogMembership::ready_is_asked_for() const {
  const NextView& next = next_view(false);
  return next.devices.size() >= config_.hello.devices || !conflict(fold_, config_.hello.device, next).empty();
}

Status LogMembership::say_ready(TimePoint now) {
  const auto it = fold_.devices.find(config_.hello.device);
  if (it == fold_.devices.end() || !may_send(ready_, now)) return ok();
  if (is_live(fold_, it->second)) return ok();
  if (is_ready(fold_, it->second) && !ready_is_asked_for()) return ok();
  ready_ = {true, now};
  Ready ready;
  ready.device = config_.hello.device;
  ready.session = session_;
  ready.view = fold_.view.number + 1;
  ready.stamp = stamp_;
  ready.digest = digest_;
  ready.reason = reason_;
  return append(ready);
}

Status LogMembership::say_close(TimePoint now) {
  const NextView& next = next_view(true);
  const auto me = fold_.devices.find(config_.hello.device);
  const bool live = me != fold_.devices.end() && me->second.session == session_ && is_live(fold_, me->second);
  if (!live || !next.why_not_closable(config_.hello.devices).empty()) {
    closable_ = false;
    return ok();
  }
  if (!closable_) closable_since_ = now;
  closable_ = true;
  if (next.devices.front() != &me->second && now - closable_since_ < config_.close_wait) return ok();
  const std::pair target{fold_.view.number + 1, fold_.last_hello};
  if (close_for_ == target && !may_send(close_, now)) return ok();
  close_for_ = target;
  close_ = {true, now};
  return append(Close{config_.hello.device, session_, target.first});
}

/// Somebody who is not of this view said HELLO: its first member shows that the view lives, so that the
/// newcomer can be told instead of waiting for ever.
Status LogMembership::confirm_view() {
  if (fold_.view.members.empty() || fold_.view.members.front() != config_.hello.device || view_broken())
    return ok();
  const std::int64_t said = std::max(static_cast<std::int64_t>(fold_.view.token), fold_.view.confirmed);
  if (fold_.last_hello < said || confirmed_for_ == fold_.last_hello) return ok();
  confirmed_for_ = fold_.last_hello;
  return append(Close{config_.hello.device, session_, fold_.view.number});
}

/// Now and then the first member says what the log comes to. Others may write in between: then it is said
/// again later. A group that is too large for one record has none.
Status LogMembership::say_snap(TimePoint now) {
  const bool first = !fold_.view.members.empty() && fold_.view.members.front() == config_.hello.device;
  const std::int64_t since = std::max<std::int64_t>(fold_.snapped_at, fold_.run.began);
  if (!first || fold_.next_offset - since < snap_every || !may_send(snap_, now)) return ok();
  snap_ = {true, now};
  Snap snap{config_.hello.device, session_, fold_.next_offset, "", snapshot_of(fold_)};
  snap.hash = snapshot_hash(snap.fold);
  if (const auto bytes = encode(snap, config_.job)) return log_.append(bytes.value());
  return ok();
}

std::optional<ViewSpec> LogMembership::new_view() {
  const auto it = fold_.view.sessions.find(config_.hello.device);
  const bool mine = session_ >= 0 && it != fold_.view.sessions.end() && it->second == session_;
  if (!mine || fold_.view.token == token_) return std::nullopt;
  token_ = fold_.view.token;
  in_view_ = shared_.view_stands();
  reason_ = in_view_ ? "" : "the view was broken before it began";
  if (!in_view_) return std::nullopt;
  const auto& closed = fold_.view;
  return ViewSpec{closed.number, closed.token,  closed.members,     ranks_of({it->first}, closed.members)[0],
                  closed.target, closed.digest, closed.holder_ranks};
}

Status LogMembership::act(TimePoint now) {
  if (session_ < 0) return say_hello(now);
  if (left_ || stop_asked()) return ok();
  if (in_view_) {
    if (auto confirmed = confirm_view(); !confirmed) return confirmed;
    if (auto said = say_saved_again(now); !said) return said;
    return say_snap(now);
  }
  if (auto said = say_ready(now); !said) return said;
  return say_close(now);
}

Result<std::optional<ViewSpec>> LogMembership::poll(TimePoint now) {
  if (final_) return *final_;
  // What was read before an error counts; a log that is away only delays the protocol.
  if (auto read = read_log(); !read) return read.error();
  if (auto session = check_session(); !session) return session.error();
  auto view = new_view();
  if (view) return view;
  if (auto known = check_state(); !known) return known.error();
  if (auto fits = check_conflict(now); !fits) return fits.error();
  if (auto acted = act(now); !acted) return acted.error();
  return view;
}

void LogMembership::hold_state(const Stamp& stamp, const std::string& digest) {
  stamp_ = stamp;
  digest_ = digest;
}

Status LogMembership::say_saved(const Stamp& stamp, const std::string& digest, const std::string& file_hash) {
  if (!in_view_) return ok();
  saved_ = Saved{config_.hello.device, session_, fold_.view.number, stamp, digest, file_hash};
  saved_sent_.active = false;
  return append(*saved_);
}

/// A stream that falls silent makes no further checkpoint: without the last SAVED its state would never
/// count.
Status LogMembership::say_saved_again(TimePoint now) {
  if (!saved_) return ok();
  const bool again = saved_sent_.active;
  if (again && !may_send(saved_sent_, now)) return ok();
  saved_sent_ = {true, now};
  return again ? append(*saved_) : ok();
}

void LogMembership::leave_view(const std::string& reason) {
  in_view_ = false;
  saved_.reset();
  reason_ = reason.substr(0, reason_max);
}

void LogMembership::leave_group(const std::string& reason) {
  if (left_ || session_ < 0) return;
  left_ = true;
  // Lost on its way, it is as if this device had been killed.
  static_cast<void>(append(Leave{config_.hello.device, session_, reason.substr(0, reason_max)}));
}

bool LogMembership::view_broken() const {
  return in_view_ && (fold_.view.token != token_ || !shared_.view_stands());
}

std::vector<std::string> LogMembership::waiting_for() const {
  if (in_view_) return {};
  if (session_ < 0) return {"the control log"};
  auto missing = missing_devices(fold_, config_.hello.devices);
  if (!missing.empty()) return missing;
  if (const std::string text = conflict(fold_, config_.hello.device, next_view(false)); !text.empty())
    return {text};
  const std::string why = next_view(true).why_not_closable(config_.hello.devices);
  return {why.empty() ? "the view to be closed" : why};
}

Status LogMembership::set(std::uint64_t token, const std::string& key, std::span<const std::byte> value) {
  Addr addr{config_.hello.device, -1, token, key, {value.begin(), value.end()}};
  {
    const auto lock = shared_.guard();
    addr.session = session_;
    if (fold_.view.token != token || fold_.view.number == 0) {
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

}  // namespace

std::unique_ptr<Membership> make_membership(const MembershipConfig& config, OrderedLog& log) {
  return std::make_unique<LogMembership>(config, log);
}

}  // namespace rivulet::sync::membership
