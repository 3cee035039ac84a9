#pragma once
#include <cstdint>
#include <string>

#include "sync/membership/fold.h"

/// Private to membership/: copies of the state that devices take before they join. Part of the fold.
namespace rivulet::sync::membership {

/// Notes the copy that a READY asks for. Its offset is the token of the connection between the two devices; a
/// repeated READY asks for the same copy.
void follow_copy(Fold& fold, DeviceEntry& device, const Ready& ready, std::int64_t offset);
/// Forgets the copy, with its addresses.
void end_copy(Fold& fold, DeviceEntry& device);
/// Whether the device is one end of the copy with this token.
bool is_end_of_copy(const Fold& fold, std::uint64_t token, const std::string& device);

}  // namespace rivulet::sync::membership
