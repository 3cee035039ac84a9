#pragma once
#include <cstdint>
#include <string>

#include "sync/membership/fold.h"

/// Private to membership/: devices of a group that changes its size which are lost again and again. Every
/// view change interrupts all, so such a device waits before it may join: not after the first loss within 10
/// min, 15 s after the second, twice as long after each further one, up to 5 min. Times are those of the log.
/// Part of the fold.
namespace rivulet::sync::membership {

/// Records that the device was lost, or was replaced by a new process, without leaving.
void note_break(DeviceEntry& device, std::int64_t time_ms);
/// Log time (ms) until which the device may not join.
std::int64_t cools_until(const DeviceEntry& device);
/// Whether the device may not join now. The newest record of the log tells the time.
bool is_cooling(const Fold& fold, const DeviceEntry& device);
/// What a cooling device waits for, for users.
std::string why_cooling(const Fold& fold, const DeviceEntry& device);

}  // namespace rivulet::sync::membership
