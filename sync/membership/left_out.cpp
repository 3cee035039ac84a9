#include "sync/membership/left_out.h"

#include <algorithm>
#include <tuple>

namespace rivulet::sync::membership {
namespace {

bool lists(const std::vector<std::string>& sorted, const DeviceEntry& device) {
  return std::ranges::binary_search(sorted, device.hello.device);
}

/// Number of judges other than `device` that accuse it, and number of other judges.
std::pair<std::size_t, std::size_t> verdict_on(const DeviceEntry& device, const Devices& judges) {
  std::size_t against = 0;
  std::size_t others = 0;
  for (const auto* judge : judges) {
    if (judge == &device) continue;
    ++others;
    if (lists(judge->ready->accuses, device)) ++against;
  }
  return {against, others};
}

/// Whether each of two candidates could connect to the other. Nothing is known of a process that was not in
/// the last view.
bool reach_each_other(const Fold& fold, const DeviceEntry& a, const DeviceEntry& b) {
  if (!is_of_last_view(fold, a) || !is_of_last_view(fold, b)) return true;
  return !lists(a.ready->unreached, b) && !lists(b.ready->unreached, a);
}

std::size_t unreachable_for(const Fold& fold, const DeviceEntry& device, const Devices& all) {
  return static_cast<std::size_t>(std::ranges::count_if(
      all, [&](const auto* other) { return other != &device && !reach_each_other(fold, device, *other); }));
}

Devices without(const Devices& all, const DeviceEntry* left_out) {
  Devices rest = all;
  std::erase(rest, left_out);
  return rest;
}

}  // namespace

std::vector<std::string> accused_among(const Fold& fold, const Devices& candidates) {
  Devices judges;
  for (const auto* device : candidates)
    if (is_of_last_view(fold, *device)) judges.push_back(device);
  const auto accuses = [](const auto* judge) { return !judge->ready->accuses.empty(); };
  if (std::ranges::none_of(judges, accuses)) return {};
  std::vector<std::string> accused;
  Devices fine;
  for (const auto* device : candidates) {
    const auto [against, others] = verdict_on(*device, judges);
    const bool guilty = against > 0 && 2 * against >= others;
    if (guilty)
      accused.push_back(device->hello.device);
    else
      fine.push_back(device);
  }
  constexpr std::size_t several = 3;
  for (const auto* judge : judges) {
    const bool alone = accuses(judge) && judges.size() > several &&
                       std::ranges::none_of(judge->ready->accuses, [&](const std::string& id) {
                         return std::ranges::find(accused, id) != accused.end();
                       });
    if (!alone || std::ranges::find(fine, judge) == fine.end()) continue;
    accused.push_back(judge->hello.device);
    std::erase(fine, judge);
  }
  std::ranges::sort(accused);
  return any_serves(fold, fine) ? accused : std::vector<std::string>();
}

void leave_out_unreachable(const Fold& fold, std::size_t least, Devices& candidates) {
  while (candidates.size() > least) {
    const DeviceEntry* worst = nullptr;
    const auto rank_of = [&](const DeviceEntry& device) {
      return std::tuple(unreachable_for(fold, device, candidates), device.session);
    };
    for (const auto* device : candidates) {
      if (unreachable_for(fold, *device, candidates) == 0 || !any_serves(fold, without(candidates, device)))
        continue;
      if (worst == nullptr || rank_of(*device) > rank_of(*worst)) worst = device;
    }
    if (worst == nullptr) return;
    std::erase(candidates, worst);
  }
}

}  // namespace rivulet::sync::membership
