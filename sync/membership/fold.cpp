#include "sync/membership/fold.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>
#include <utility>

#include "sync/membership/cool_down.h"
#include "sync/membership/copies.h"
#include "sync/membership/next_view.h"
#include "sync/membership/seal.h"
#include "sync/membership/snapshot.h"

namespace rivulet::sync::membership {

namespace {

/// Removes the id that has been silent longest and is not a member. Otherwise pods with random names would
/// fill the fold.
void make_room(Fold& fold) {
  if (fold.devices.size() < devices_max) return;
  auto oldest = fold.devices.end();
  for (auto it = fold.devices.begin(); it != fold.devices.end(); ++it) {
    const bool member = fold.view.sessions.contains(it->first);
    if (member || is_ready(fold, it->second)) continue;
    if (oldest == fold.devices.end() || it->second.session < oldest->second.session) oldest = it;
  }
  if (oldest != fold.devices.end()) fold.devices.erase(oldest);
}

/// Position and time of a record in the log.
struct Place {
  std::int64_t folded = 0;  ///< next_offset before it
  std::int64_t offset = 0;
  std::int64_t time_ms = 0;
  std::int64_t folded_ms = 0;  ///< time_ms of the fold before it
};

/// Why the record was ignored, or nothing: it counts.
using Outcome = std::optional<Ignored>;
constexpr Outcome counts = std::nullopt;

/// Keeps only the numbers that must never repeat.
void begin_run(Fold& fold, std::int64_t offset) {
  fold.run = {fold.run.number + 1, offset, fold.view.number};
  fold.devices.clear();
  const ClosedView last = std::move(fold.view);
  fold.view = {};
  fold.view.number = last.number;
  fold.view.token = last.token;
  fold.committed = {};
  fold.committed_by.clear();
  fold.saved.clear();
  fold.addresses.clear();
}

void forget_ready(Fold& fold, DeviceEntry& device) {
  end_copy(fold, device);
  device.ready.reset();
  device.ready_at = -1;
}

void begin_session(Fold& fold, DeviceEntry& device, std::int64_t offset, const Hello& hello) {
  if (device.session >= 0 && !device.left && is_of_last_view(fold, device)) note_break(device, fold.time_ms);
  if (device.session >= 0) {
    device.before = {device.session, device.hello.host, device.hello.pid, !is_open(fold, device)};
    if (device.past_nonces.size() == past_nonces_max) device.past_nonces.erase(device.past_nonces.begin());
    device.past_nonces.push_back(device.hello.nonce);
  }
  device.session = offset;
  device.hello = hello;
  device.hello.has_state.reset();  // only for the decision on this HELLO
  device.hello.unheard_since = -1;
  device.last_seen = offset;
  forget_ready(fold, device);
  device.left.reset();
  device.left_for = WhyNot::none;
  device.left_in_order = false;
  device.expelled_again = false;
}

/// A session that can join the group replaces its predecessor immediately. Others must wait until the
/// predecessor is silent: a live one answers.
bool displaces(const Fold& fold, const DeviceEntry& present, const Hello& hello) {
  return present.last_seen < hello.unheard_since || !cannot_replace(fold, hello);
}

/// Makes a request that is due, if the last one was long enough ago.
void make_due_request(Fold& fold, std::int64_t up_to) {
  if (fold.asked.due && fold.time_ms - ReadyRequest::every_ms >= fold.asked.ms)
    fold.asked = {.up_to = up_to, .ms = fold.time_ms};
}

bool was_received(const DeviceEntry& device, const Hello& hello) {
  const auto& past = device.past_nonces;
  return device.hello.nonce == hello.nonce || std::find(past.begin(), past.end(), hello.nonce) != past.end();
}

Outcome apply_record(Fold& fold, const Place& at, const Hello& hello) {
  auto it = fold.devices.find(hello.device);
  // The same HELLO twice: the session began with the first.
  if (it != fold.devices.end() && was_received(it->second, hello)) return Ignored::replayed;
  const NewRun wish = hello.new_run ? new_run_by(fold, hello.device) : NewRun::joins;
  if (wish == NewRun::refused) return Ignored::refused;
  if (wish == NewRun::begins || fold.run.number == 0) {
    begin_run(fold, at.offset);
    it = fold.devices.end();
  }
  if (it != fold.devices.end() && !displaces(fold, it->second, hello)) return Ignored::refused;
  if (it == fold.devices.end()) {
    make_room(fold);
    if (fold.devices.size() >= devices_max) return Ignored::full;
    it = fold.devices.emplace(hello.device, DeviceEntry{}).first;
  }
  begin_session(fold, it->second, at.offset, hello);
  fold.last_hello = at.offset;
  if (!is_cooling(fold, it->second)) fold.asked.due = true;
  make_due_request(fold, at.offset);
  return counts;
}

DeviceEntry* device_in_session(Fold& fold, const std::string& device, std::int64_t session) {
  const auto it = fold.devices.find(device);
  return it != fold.devices.end() && it->second.session == session ? &it->second : nullptr;
}

/// Whether a member of the last view is ready for the next.
bool is_being_left(const Fold& fold) {
  return std::ranges::any_of(fold.devices, [&](const auto& entry) {
    return is_of_last_view(fold, entry.second) && is_ready(fold, entry.second);
  });
}

Outcome apply_record(Fold& fold, const Place& at, const Ready& ready) {
  DeviceEntry* device = device_in_session(fold, ready.device, ready.session);
  if (device == nullptr || !is_open(fold, *device)) return Ignored::stale_session;
  if (ready.view != fold.view.number + 1) return Ignored::wrong_view;
  // A state of a view that never existed, or of an earlier run.
  if (ready.stamp.lineage > fold.view.number || !is_of_run(fold, ready.stamp)) return Ignored::impossible;
  // A group that changes its size does not wait for newcomers that have died: they must repeat their READYs
  // once the first member leaves the view.
  if (!device->hello.devices.is_fixed() && is_of_last_view(fold, *device) && !is_being_left(fold))
    fold.asked = {.up_to = at.offset - 1, .ms = fold.time_ms};
  make_due_request(fold, at.offset - 1);
  follow_copy(fold, *device, ready, at.offset);
  device->ready = ready;
  device->ready_at = at.offset;
  device->limited = ready.limited;
  return counts;
}

/// Two sessions were alive at the same time. After too many swaps in a short time, the intended one is
/// unknown.
void note_swap(DeviceEntry& device, const Place& at) {
  std::erase_if(device.swaps, [&](std::int64_t ms) { return ms + swaps_within_ms < at.time_ms; });
  if (device.swaps.size() == swaps_max) device.swaps.erase(device.swaps.begin());
  device.swaps.push_back(at.time_ms);
  if (device.swaps.size() == swaps_max) device.contested = at.offset;
}

Outcome apply_record(Fold& fold, const Place& at, const Leave& leave) {
  const auto it = fold.devices.find(leave.device);
  if (it == fold.devices.end()) return Ignored::stale_session;
  DeviceEntry& device = it->second;
  if (device.before.session == leave.session && !device.before.over) {
    device.before.over = true;
    note_swap(device, at);
    return counts;
  }
  if (device.session != leave.session || device.left) return Ignored::stale_session;
  device.left = leave.reason;
  device.left_for = leave.cause;
  device.left_in_order = leave.ends != Ends::nothing;
  forget_ready(fold, device);
  note_end(fold, leave);
  return counts;
}

Outcome apply_record(Fold& fold, const Place& at, const Stop&) {
  fold.stopped_at = at.offset;
  fold.view.ended = true;
  for (auto& entry : fold.devices) forget_ready(fold, entry.second);
  return counts;
}

bool is_member(const Fold& fold, const std::string& device, std::int64_t session) {
  const auto it = fold.view.sessions.find(device);
  return it != fold.view.sessions.end() && it->second == session;
}

Outcome apply_record(Fold& fold, const Place& at, const Close& close) {
  const DeviceEntry* device = device_in_session(fold, close.device, close.session);
  if (device == nullptr) return Ignored::stale_session;
  if (close.view == fold.view.number && is_member(fold, close.device, close.session)) {
    fold.view.confirmed = at.offset;
    return counts;
  }
  if (close.view != fold.view.number + 1) return Ignored::wrong_view;
  const NextView next = next_view(fold, true, device->hello.devices);
  const bool member = std::find(next.devices.begin(), next.devices.end(), device) != next.devices.end();
  if (next.error || !member) return Ignored::refused;
  seal(fold, at.offset, at.time_ms, next);
  return counts;
}

bool is_of_present_view(const Fold& fold, const Saved& saved) {
  if (!fold.rules.fence) return true;
  const bool of_view = saved.stamp.lineage == fold.view.number || !fold.rules.restamp;
  return saved.view == fold.view.number && of_view && is_member(fold, saved.device, saved.session);
}

/// Returns false if it contains the id already.
bool add_sorted(std::vector<std::string>& ids, const std::string& id) {
  const auto at = std::ranges::lower_bound(ids, id);
  if (at != ids.end() && *at == id) return false;
  ids.insert(at, id);
  return true;
}

/// Counts only states that were applied or adopted in this view, and only while it is current.
Outcome apply_record(Fold& fold, const Place&, const Saved& saved) {
  const auto entry = fold.devices.find(saved.device);
  const DeviceEntry* device = entry == fold.devices.end() ? nullptr : &entry->second;
  if (device == nullptr || (fold.rules.fence && device->session != saved.session))
    return Ignored::stale_session;
  if (!is_of_present_view(fold, saved)) return Ignored::wrong_view;
  const Committed state{saved.stamp, saved.digest};
  if (state == fold.committed && add_sorted(fold.committed_by, saved.device)) return counts;
  if (saved.stamp <= fold.committed.stamp) return Ignored::replayed;
  auto& disks = fold.saved[state];
  if (std::find(disks.begin(), disks.end(), saved.device) != disks.end()) return Ignored::replayed;
  disks.push_back(saved.device);
  if (disks.size() >= quorum_of(device->hello)) {
    fold.committed = state;
    std::ranges::sort(disks);
    fold.committed_by = std::move(disks);
    std::erase_if(fold.saved, [&](const auto& other) { return other.first.stamp <= saved.stamp; });
  }
  while (fold.saved.size() > saved_max) fold.saved.erase(fold.saved.begin());
  return counts;
}

std::size_t addresses_of(const Fold& fold, std::uint64_t token) {
  const auto first = fold.addresses.lower_bound({token, ""});
  const auto last = fold.addresses.lower_bound({token + 1, ""});
  return static_cast<std::size_t>(std::distance(first, last));
}

Outcome apply_record(Fold& fold, const Place&, const Addr& addr) {
  if (device_in_session(fold, addr.device, addr.session) == nullptr) return Ignored::stale_session;
  const bool current = fold.view.number > 0 && addr.token == fold.view.token;
  const bool of_view = current && is_member(fold, addr.device, addr.session);
  if (!of_view && !is_end_of_copy(fold, addr.token, addr.device)) return Ignored::wrong_view;
  const auto key = std::make_pair(addr.token, addr.key);
  const std::size_t used = addresses_of(fold, addr.token);
  const std::size_t room = addresses_max_per_member * (of_view ? fold.view.members.size() : 2);
  if (used >= room && !fold.addresses.contains(key)) return Ignored::full;
  fold.addresses[key] = addr.value;
  return counts;
}

/// Compares only snapshots of exactly the records before it. A different hash means a different fold, by
/// a different build or a memory error.
Outcome apply_record(Fold& fold, const Place& at, const Snap& snap) {
  if (device_in_session(fold, snap.device, snap.session) == nullptr) return Ignored::stale_session;
  if (snap.covers != at.folded) return Ignored::refused;
  const std::int64_t now_ms = std::exchange(fold.time_ms, at.folded_ms);  // as when the snapshot was taken
  fold.next_offset = at.folded;
  const bool same = is_snapshot_of(snap, fold);
  fold.next_offset = at.offset + 1;
  fold.time_ms = now_ms;
  if (!same) return Ignored::impossible;
  fold.snapped_at = at.offset;
  return counts;
}

/// Any counted record shows that the process of its session is alive.
void note_seen(Fold& fold, std::int64_t offset, const ControlRecord& record) {
  std::visit(
      [&](const auto& r) {
        if constexpr (requires { r.session; })
          if (DeviceEntry* device = device_in_session(fold, r.device, r.session)) device->last_seen = offset;
      },
      record);
}

}  // namespace

std::size_t quorum_of(const Hello& hello) {
  std::size_t wanted = 2;
  if (const auto it = hello.config.find("checkpoint.quorum"); it != hello.config.end())
    std::from_chars(it->second.data(), it->second.data() + it->second.size(), wanted);
  return std::clamp<std::size_t>(wanted, 1, hello.devices.max);
}

bool is_ready(const Fold& fold, const DeviceEntry& device) {
  return device.ready.has_value() && device.ready->view == fold.view.number + 1;
}

bool is_live(const Fold& fold, const DeviceEntry& device) {
  return is_ready(fold, device) && device.ready_at > fold.asked.up_to;
}

std::vector<std::uint32_t> ranks_of(const std::vector<std::string>& ids,
                                    const std::vector<std::string>& members) {
  std::vector<std::uint32_t> ranks;
  ranks.reserve(ids.size());
  auto at = members.begin();
  for (const auto& id : ids) {
    at = std::lower_bound(at, members.end(), id);
    ranks.push_back(static_cast<std::uint32_t>(at - members.begin()));
  }
  return ranks;
}

std::uint64_t IgnoredRecords::total() const noexcept {
  return std::accumulate(counts_.begin(), counts_.end(), std::uint64_t{0});
}

bool is_open(const Fold& fold, const DeviceEntry& device) {
  return !device.left && device.session > fold.stopped_at;
}

NewRun new_run_by(const Fold& fold, const std::string& device) {
  if (fold.view.number == fold.run.views_before) return NewRun::joins;  // no view in it yet
  const auto own = fold.devices.find(device);
  const bool back = own != fold.devices.end() && is_open(fold, own->second);
  const bool others = std::any_of(fold.devices.begin(), fold.devices.end(), [&](const auto& entry) {
    return entry.first != device && is_open(fold, entry.second);
  });
  if (back && own->second.hello.new_run) return NewRun::joins;
  return others ? NewRun::refused : NewRun::begins;
}

bool is_of_run(const Fold& fold, const Stamp& stamp) {
  return stamp == Stamp{} || stamp.lineage > fold.run.views_before || fold.run.number <= 1;
}

void apply(Fold& fold, std::int64_t offset, const ControlRecord& record, std::int64_t time_ms) {
  if (offset < fold.next_offset) {  // a log never repeats an offset: replayed or out of order
    fold.ignored.add(Ignored::replayed);
    return;
  }
  const Place at{fold.next_offset, offset, time_ms, fold.time_ms};
  fold.time_ms = std::max(fold.time_ms, time_ms);
  fold.next_offset = offset + 1;
  const Outcome outcome = std::visit([&](const auto& r) { return apply_record(fold, at, r); }, record);
  if (outcome)
    fold.ignored.add(*outcome);
  else
    note_seen(fold, offset, record);
}

std::optional<ControlRecord> apply(Fold& fold, const LogEntry& entry, const std::string& job) {
  Ignored reason{};
  auto record = decode(entry.bytes, job, &reason);
  if (record) {
    apply(fold, entry.offset, record.value(), entry.append_time_ms);
    return std::move(record).value();
  }
  fold.ignored.add(reason);
  fold.next_offset = std::max(fold.next_offset, entry.offset + 1);
  return std::nullopt;
}

AdmissionError why_not_closable(const Fold& fold, const GroupSizes& sizes) {
  return next_view(fold, true, sizes).error;
}

bool view_intact(const Fold& fold) {
  return std::all_of(fold.view.sessions.begin(), fold.view.sessions.end(), [&](const auto& member) {
    const auto it = fold.devices.find(member.first);
    return it != fold.devices.end() && it->second.session == member.second;
  });
}

bool view_left(const Fold& fold) {
  return std::any_of(fold.view.sessions.begin(), fold.view.sessions.end(), [&](const auto& member) {
    const auto it = fold.devices.find(member.first);
    return it != fold.devices.end() && (it->second.left || is_ready(fold, it->second));
  });
}

}  // namespace rivulet::sync::membership
