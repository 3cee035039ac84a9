#include "sync/membership/cool_down.h"

#include <algorithm>

namespace rivulet::sync::membership {
namespace {

constexpr std::int64_t within_ms = std::int64_t{10} * 60 * 1000;
constexpr std::int64_t first_ms = 15'000;
constexpr std::int64_t longest_ms = std::int64_t{5} * 60 * 1000;

}  // namespace

void note_break(DeviceEntry& device, std::int64_t time_ms) {
  std::erase_if(device.breaks, [&](std::int64_t ms) { return ms + within_ms < time_ms; });
  if (device.breaks.size() == breaks_max) device.breaks.erase(device.breaks.begin());
  device.breaks.push_back(time_ms);
}

std::int64_t cools_until(const DeviceEntry& device) {
  std::int64_t wait_ms = 0;
  for (std::size_t k = 2; k <= device.breaks.size(); ++k)
    wait_ms = wait_ms == 0 ? first_ms : std::min(2 * wait_ms, longest_ms);
  return wait_ms == 0 ? 0 : device.breaks.back() + wait_ms;
}

bool is_cooling(const Fold& fold, const DeviceEntry& device) {
  return fold.rules.cool_down && !device.hello.devices.is_fixed() && fold.time_ms < cools_until(device);
}

std::string why_cooling(const Fold& fold, const DeviceEntry& device) {
  const std::int64_t seconds = (cools_until(device) - fold.time_ms + 999) / 1000;
  return std::to_string(seconds) + " s to pass: it was lost " + std::to_string(device.breaks.size()) +
         " times within 10 minutes";
}

}  // namespace rivulet::sync::membership
