#include "sync/membership/copies.h"

#include <algorithm>

namespace rivulet::sync::membership {

void end_copy(Fold& fold, DeviceEntry& device) {
  if (device.copy_at < 0) return;
  const auto token = static_cast<std::uint64_t>(device.copy_at);
  std::erase_if(fold.addresses, [&](const auto& entry) { return entry.first.first == token; });
  device.copy_at = -1;
}

void follow_copy(Fold& fold, DeviceEntry& device, const Ready& ready, std::int64_t offset) {
  if (device.copy_at >= 0 && device.ready->copy == ready.copy) return;
  end_copy(fold, device);
  if (!ready.copy.donor.empty()) device.copy_at = offset;
}

bool is_end_of_copy(const Fold& fold, std::uint64_t token, const std::string& device) {
  return std::ranges::any_of(fold.devices, [&](const auto& entry) {
    const auto& [id, receiver] = entry;
    if (receiver.copy_at < 0 || static_cast<std::uint64_t>(receiver.copy_at) != token) return false;
    return device == id || device == receiver.ready->copy.donor;
  });
}

bool copies_first(const Ready& ready) {
  return ready.copy.bytes > 0 && ready.copy.failed < copies_max;
}

}  // namespace rivulet::sync::membership
