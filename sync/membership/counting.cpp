#include "sync/membership/counting.h"

#include <algorithm>

namespace rivulet::sync::membership {

void note_end(Fold& fold, const Leave& leave) {
  if (!fold.view.sessions.contains(leave.device)) return;
  const bool all_left = std::all_of(fold.view.members.begin(), fold.view.members.end(), [&](const auto& id) {
    const auto member = fold.devices.find(id);
    return member != fold.devices.end() && member->second.left_in_order;
  });
  if (leave.ends == Ends::group || all_left) fold.view.ended = true;
}

std::optional<Clocks> counts_from(const ClosedView& view, const Fold& fold) {
  const auto ready_of = [&](const std::string& id) -> const Ready& { return *fold.devices.at(id).ready; };
  const bool limited = std::any_of(view.members.begin(), view.members.end(),
                                   [&](const std::string& id) { return ready_of(id).limited; });
  const bool may_return = std::ranges::any_of(fold.devices, [&](const auto& entry) {
    const auto& [id, device] = entry;
    return device.limited && is_open(fold, device) && !std::ranges::binary_search(view.members.list(), id);
  });
  if (!limited && !may_return) return std::nullopt;
  const Clocks here{view.target.step, ready_of(view.holders.front()).rows};
  const auto& began = fold.view.counts_from;
  const bool behind = began && (here.step < began->step || here.rows < began->rows);
  if (began && !behind && !fold.view.ended) return began;
  return limited ? std::optional(here) : std::nullopt;
}

}  // namespace rivulet::sync::membership
