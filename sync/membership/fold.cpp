#include "sync/membership/fold.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include "sync/membership/describe.h"

namespace rivulet::sync::membership {

namespace {

/// The id that has been silent longest and is no member makes room: pods with random names must not fill the
/// fold.
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

bool apply_record(Fold& fold, std::int64_t offset, const Hello& hello) {
  auto it = fold.devices.find(hello.device);
  if (it == fold.devices.end()) {
    make_room(fold);
    if (fold.devices.size() >= devices_max) return false;
    it = fold.devices.emplace(hello.device, DeviceEntry{}).first;
  } else if (it->second.hello.nonce == hello.nonce) {
    return false;  // the same HELLO written twice: the session began with the first
  }
  it->second = DeviceEntry{offset, hello, std::nullopt, -1};
  fold.last_hello = offset;
  return true;
}

DeviceEntry* device_in_session(Fold& fold, const std::string& device, std::int64_t session) {
  const auto it = fold.devices.find(device);
  return it != fold.devices.end() && it->second.session == session ? &it->second : nullptr;
}

bool apply_record(Fold& fold, std::int64_t offset, const Ready& ready) {
  DeviceEntry* device = device_in_session(fold, ready.device, ready.session);
  if (device == nullptr || ready.view != fold.view.number + 1) return false;
  if (ready.stamp.lineage > fold.view.number) return false;  // a state from a view that never was
  device->ready = ready;
  device->ready_at = offset;
  return true;
}

/// The best stamp wins. Equal stamps have equal digests (I3); should they not, what most hold wins.
void choose_target(ClosedView& view, const Fold& fold) {
  std::map<Committed, std::vector<std::string>> held;
  for (const auto& id : view.members) {
    const Ready& ready = *fold.devices.at(id).ready;
    held[{ready.stamp, ready.digest}].push_back(id);
  }
  const auto better = [](const auto& a, const auto& b) {
    return std::tuple(a.first.stamp, a.second.size()) < std::tuple(b.first.stamp, b.second.size());
  };
  const auto best = std::max_element(held.begin(), held.end(), better);
  view.target = best->first.stamp;
  view.digest = best->first.digest;
  view.holders = best->second;
}

void seal(Fold& fold, std::int64_t offset) {
  ClosedView view;
  view.number = fold.view.number + 1;
  view.token = static_cast<std::uint64_t>(offset);
  for (const auto& [id, device] : fold.devices) {
    if (!is_live(fold, device)) continue;
    view.members.push_back(id);
    view.sessions.emplace(id, device.session);
  }
  choose_target(view, fold);
  fold.saved.clear();  // what was not committed in its view never will be by that
  for (auto& entry : fold.devices) {
    entry.second.ready.reset();
    entry.second.ready_at = -1;
  }
  fold.view = std::move(view);
  fold.addresses.clear();
}

bool is_member(const Fold& fold, const std::string& device, std::int64_t session) {
  const auto it = fold.view.sessions.find(device);
  return it != fold.view.sessions.end() && it->second == session;
}

bool apply_record(Fold& fold, std::int64_t offset, const Close& close) {
  const DeviceEntry* device = device_in_session(fold, close.device, close.session);
  if (device == nullptr) return false;
  if (close.view == fold.view.number && is_member(fold, close.device, close.session)) {
    fold.view.confirmed = offset;
    return true;
  }
  if (close.view != fold.view.number + 1 || !is_live(fold, *device)) return false;
  if (!why_not_closable(fold, device->hello.devices).empty()) return false;
  seal(fold, offset);
  return true;
}

/// Only what was applied or adopted in this very view counts, and only while it is the current one.
bool apply_record(Fold& fold, std::int64_t, const Saved& saved) {
  const DeviceEntry* device = device_in_session(fold, saved.device, saved.session);
  const bool current = saved.view == fold.view.number && saved.stamp.lineage == fold.view.number;
  if (device == nullptr || !current || !is_member(fold, saved.device, saved.session)) return false;
  if (saved.stamp <= fold.committed.stamp) return false;
  const Committed state{saved.stamp, saved.digest};
  auto& disks = fold.saved[state];
  if (std::find(disks.begin(), disks.end(), saved.device) != disks.end()) return false;
  disks.push_back(saved.device);
  if (disks.size() >= quorum_of(device->hello)) {
    fold.committed = state;
    std::erase_if(fold.saved, [&](const auto& entry) { return entry.first.stamp <= saved.stamp; });
  }
  while (fold.saved.size() > saved_max) fold.saved.erase(fold.saved.begin());
  return true;
}

bool apply_record(Fold& fold, std::int64_t, const Addr& addr) {
  const bool current = fold.view.number > 0 && addr.token == fold.view.token;
  if (!current || !is_member(fold, addr.device, addr.session)) return false;
  if (device_in_session(fold, addr.device, addr.session) == nullptr) return false;
  const auto key = std::make_pair(addr.token, addr.key);
  const bool room = fold.addresses.size() < addresses_max_per_member * fold.view.members.size();
  if (!room && !fold.addresses.contains(key)) return false;
  fold.addresses[key] = addr.value;
  return true;
}

}  // namespace

std::size_t quorum_of(const Hello& hello) {
  std::size_t wanted = 2;
  if (const auto it = hello.config.find("checkpoint.quorum"); it != hello.config.end())
    std::from_chars(it->second.data(), it->second.data() + it->second.size(), wanted);
  return std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(1, hello.devices));
}

bool is_ready(const Fold& fold, const DeviceEntry& device) {
  return device.ready.has_value() && device.ready->view == fold.view.number + 1;
}

bool is_live(const Fold& fold, const DeviceEntry& device) {
  return is_ready(fold, device) && device.ready_at > fold.last_hello;
}

void apply(Fold& fold, std::int64_t offset, const ControlRecord& record) {
  if (offset < fold.next_offset) {  // a log never repeats an offset: replayed or out of order
    ++fold.ignored;
    return;
  }
  fold.next_offset = offset + 1;
  if (!std::visit([&](const auto& r) { return apply_record(fold, offset, r); }, record)) ++fold.ignored;
}

std::string why_not_closable(const Fold& fold, std::uint32_t devices) {
  const Devices live = devices_of_next_view(fold, true);
  if (live.size() < devices) {
    return std::to_string(live.size()) + " of " + std::to_string(devices) + " devices are ready";
  }
  if (const std::string text = first_conflict(live, devices); !text.empty()) return text;
  const bool held = std::any_of(live.begin(), live.end(), [&](const DeviceEntry* device) {
    return device->ready->stamp >= fold.committed.stamp;
  });
  if (held) return {};
  return "the state that the group has saved (" + text_of(fold.committed.stamp) +
         ") is on none of the devices that are ready: start one that has it, or delete the control topic to "
         "start over";
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
    return it != fold.devices.end() && is_ready(fold, it->second);
  });
}

}  // namespace rivulet::sync::membership
