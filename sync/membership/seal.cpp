#include "sync/membership/seal.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sync/membership/cool_down.h"
#include "sync/membership/counting.h"

namespace rivulet::sync::membership {
namespace {

/// Chooses the best stamp of the devices that are not accused. Equal stamps have equal digests (I3); if not,
/// the digest with most holders wins.
void choose_target(ClosedView& view, const Fold& fold, const NextView& next) {
  std::map<Committed, std::vector<std::string>> held;
  for (const auto& id : view.members) {
    if (next.is_accused(id)) continue;
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
  view.holder_ranks = ranks_of(view.holders, view.members);
}

void note_expelled(DeviceEntry& device, std::int64_t time_ms) {
  device.expelled_again = device.expelled_ms && time_ms - *device.expelled_ms <= expelled_within_ms;
  device.expelled_ms = time_ms;
}

}  // namespace

void seal(Fold& fold, std::int64_t offset, std::int64_t time_ms, const NextView& next) {
  ClosedView view;
  view.number = fold.view.number + 1;
  view.token = static_cast<std::uint64_t>(offset);
  std::vector<std::string> members;
  std::vector<std::vector<std::string>> owners;
  for (const auto* device : next.devices) {
    const std::string& id = device->hello.device;
    members.push_back(id);
    view.sessions.emplace(id, device->session);
    owners.push_back(device->hello.partitions);
  }
  view.config_hash = next.devices.front()->hello.config_hash;
  view.members = std::move(members);
  view.owners = std::move(owners);
  choose_target(view, fold, next);
  view.counts_from = counts_from(view, fold);
  for (const auto& [id, session] : fold.view.sessions) {
    const auto member = fold.devices.find(id);
    const bool stays = std::ranges::binary_search(view.members, id);
    if (member == fold.devices.end() || stays || member->second.session != session || member->second.left)
      continue;
    if (!is_live(fold, member->second)) note_break(member->second, fold.time_ms);
  }
  for (const auto& id : next.accused) note_expelled(fold.devices.at(id), time_ms);
  fold.saved.clear();  // states not committed in their view are never committed
  for (auto& entry : fold.devices) {
    entry.second.ready.reset();
    entry.second.ready_at = -1;
    entry.second.copy_at = -1;
  }
  fold.view = std::move(view);
  fold.addresses.clear();
}

}  // namespace rivulet::sync::membership
