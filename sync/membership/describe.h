#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sync/membership/fold.h"

/// Private to membership/: who wants to be in the next view, what stands against it, and how to say that.
namespace rivulet::sync::membership {

using Devices = std::vector<const DeviceEntry*>;

/// Ready devices (`only_live`: live ones), sorted by id. Valid while the fold is not changed.
Devices devices_of_next_view(const Fold& fold, bool only_live);

/// The first thing that keeps these devices from being one group of `wanted`: configuration, partitions,
/// number. Fewer than wanted is no conflict. Empty = none.
std::string first_conflict(const Devices& devices, std::uint32_t wanted);

/// Enough devices for a view, but none holds the state that the group has saved: what to do. Empty = not so.
std::string lost_state(const Fold& fold, const Devices& devices, std::uint32_t wanted);

/// Who wants to be in the next view of a group of `wanted`, and what stands against it: the same for all who
/// have folded equally far.
struct NextView {
  Devices devices;
  std::string conflict;  ///< of these devices
  std::string lost;      ///< the state that none of them holds
  [[nodiscard]] std::string why_not_closable(std::uint32_t wanted) const;
};
NextView next_view(const Fold& fold, bool only_live, std::uint32_t wanted);
/// conflict() of fold.h where `next` is known.
std::string conflict(const Fold& fold, const std::string& self, const NextView& next);

/// Two processes with one id have replaced each other too often.
std::string contested_device(const DeviceEntry& device);

/// Ids that the next view still misses, as far as the log knows them, then "2 more devices".
std::vector<std::string> missing_devices(const Fold& fold, std::uint32_t wanted);

/// The other side of a conflict has found it first and is gone: it does not end by that.
bool somebody_left_for(const Fold& fold, const std::string& conflict);

}  // namespace rivulet::sync::membership
