#include "sync/membership/waiting.h"

#include <algorithm>

#include "sync/membership/cool_down.h"

namespace rivulet::sync::membership {
namespace {

bool is_named_lost(const std::string& id, const Devices& by) {
  return std::ranges::any_of(
      by, [&](const auto* device) { return std::ranges::binary_search(device->ready->lost, id); });
}

/// Newcomers that were ready before the last view was left, and have not repeated it since.
bool newcomer_lags(const Fold& fold) {
  return std::ranges::any_of(fold.devices, [&](const auto& entry) {
    const DeviceEntry& device = entry.second;
    return !is_cooling(fold, device) && is_open(fold, device) && is_ready(fold, device) &&
           !is_live(fold, device) && !is_of_last_view(fold, device) && !copies_first(*device.ready);
  });
}

/// Whether a device outside `here` is about to have the state of the members, from a copy.
bool copy_ends(const Fold& fold, const Devices& here) {
  const auto outside = [&](const std::string& id) {
    const auto device = fold.devices.find(id);
    return device != fold.devices.end() && is_open(fold, device->second) &&
           !is_cooling(fold, device->second) &&
           std::ranges::none_of(here, [&](const auto* other) { return other->hello.device == id; });
  };
  return std::ranges::any_of(
      here, [&](const auto* device) { return std::ranges::any_of(device->ready->copied, outside); });
}

/// Whether a member of the last view other than `device` itself reads one of its partitions.
bool claims_of_members(const Fold& fold, const DeviceEntry& device) {
  const auto& members = fold.view.members;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (members[rank] == device.hello.device) continue;
    const auto& owned = fold.view.owners[rank];
    if (std::ranges::any_of(device.hello.partitions,
                            [&](const std::string& id) { return std::ranges::binary_search(owned, id); }))
      return true;
  }
  return false;
}

}  // namespace

bool view_stands(const Fold& fold) {
  if (fold.view.number <= fold.run.views_before || fold.view.ended || !view_intact(fold)) return false;
  bool open = false;  // a view goes on for a while after a member has announced that it leaves
  for (const auto& id : fold.view.members) {
    const DeviceEntry& member = fold.devices.at(id);
    if (is_ready(fold, member)) return false;
    open = open || is_open(fold, member);
  }
  return open;
}

StillMissing still_missing(const Fold& fold, const NextView& next, const GroupSizes& sizes) {
  const Devices& here = next.devices;
  if (sizes.is_fixed() || here.size() >= sizes.max) return StillMissing::nobody;
  const bool goes_on =
      std::ranges::any_of(here, [&](const auto* device) { return is_of_last_view(fold, *device); });
  if (!goes_on && view_stands(fold)) return StillMissing::standing;
  if (!goes_on && here.size() < sizes.wanted) return StillMissing::starting;
  bool lost = false;
  for (const auto& [id, session] : fold.view.sessions) {
    const auto member = fold.devices.find(id);
    if (member == fold.devices.end() || !is_open(fold, member->second) || is_live(fold, member->second) ||
        is_cooling(fold, member->second))
      continue;
    if (member->second.session != session || !is_named_lost(id, here)) return StillMissing::returning;
    lost = true;
  }
  if (copy_ends(fold, here)) return StillMissing::returning;
  return lost || newcomer_lags(fold) ? StillMissing::lost : StillMissing::nobody;
}

std::int64_t last_heard_of_view(const Fold& fold) {
  auto heard = static_cast<std::int64_t>(fold.view.token);
  for (const auto& [id, session] : fold.view.sessions) {
    const auto member = fold.devices.find(id);
    if (member != fold.devices.end() && member->second.session == session)
      heard = std::max(heard, member->second.last_seen);
  }
  return heard;
}

std::int64_t last_heard_of_all(const Fold& fold) {
  std::int64_t heard = fold.next_offset;
  for (const auto& [id, session] : fold.view.sessions) {
    const auto member = fold.devices.find(id);
    const bool present = member != fold.devices.end() && member->second.session == session;
    heard = std::min(heard, present ? member->second.last_seen : session);
  }
  return std::max(heard, fold.view.confirmed);
}

std::int64_t last_knock(const Fold& fold) {
  std::int64_t knock = fold.last_hello;
  for (const auto& [id, device] : fold.devices)
    if (!is_of_last_view(fold, device)) knock = std::max(knock, device.ready_at);
  return knock;
}

bool joiner_waits(const Fold& fold, const GroupSizes& sizes) {
  if (sizes.is_fixed() || fold.view.members.size() >= sizes.max) return false;
  return std::ranges::any_of(fold.devices, [&](const auto& entry) {
    const DeviceEntry& device = entry.second;
    if (is_cooling(fold, device)) return false;
    const bool outside = !is_of_last_view(fold, device) && is_open(fold, device) && is_ready(fold, device);
    return outside && !copies_first(*device.ready) && device.hello.config_hash == fold.view.config_hash &&
           !claims_of_members(fold, device);
  });
}

}  // namespace rivulet::sync::membership
