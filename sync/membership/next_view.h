#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sync/membership/fold.h"

/// Private to membership/: who is in the next view, who is not let in, and what stands against it. Pure
/// functions of the fold.
namespace rivulet::sync::membership {

/// Sorted by id. Valid while the fold is not changed.
using Devices = std::vector<const DeviceEntry*>;

/// A device that differs from a group which has formed: it goes, the others wait on.
struct Rejected {
  const DeviceEntry* device = nullptr;
  Obstacle why;
};

/// The same for all who have folded equally far.
///
/// The configuration of the last view stands while one of the devices has it, and a device with another is
/// rejected. If none has it and all share another, that one is taken. Places go to members of the last view
/// that claim what they claimed in it, then to the device that wrote HELLO first; who claims a partition of
/// an earlier one, or finds no place, is rejected. A newcomer without the state that was saved is rejected
/// while it is the member's that is absent. Before the first view of a run nobody is rejected: there is
/// nobody to side with.
struct NextView {
  Devices devices;
  std::vector<Rejected> rejected;  ///< sorted by id
  Obstacle obstacle;               ///< against a view of `devices`
  [[nodiscard]] const Obstacle* why_rejected(const std::string& device) const;
};
/// Of the devices that are ready (`only_live`: live) and of a group of `wanted`.
NextView next_view(const Fold& fold, bool only_live, std::uint32_t wanted);

/// Against `self`, which has come to a group that is complete and has shown since then that it lives. None if
/// there is no such group, or `self` is in it.
Obstacle outside(const Fold& fold, const std::string& self);

/// Why a process with this HELLO could not serve in the place of the session that its device has: its state
/// is of no view of this run, or less than what the group has saved and nobody shows to have that, or it
/// differs from the group where that session does not. None: it can, or there is no such session.
Obstacle cannot_replace(const Fold& fold, const Hello& hello);

/// Of a state that is of no view of this run. None: it can be.
Obstacle wrong_state(const Fold& fold, const std::string& job, const std::string& device, const Stamp& state);

/// Ids that the next view still misses, as far as the log knows them, then "2 more devices".
std::vector<std::string> missing_devices(const Fold& fold, const NextView& next, std::uint32_t wanted);

}  // namespace rivulet::sync::membership
