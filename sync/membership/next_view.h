#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "sync/membership/fold.h"

/// Private to membership/: members of the next view, rejected devices, and obstacles. Pure functions of the
/// fold.
namespace rivulet::sync::membership {

/// Sorted by id. Valid until the fold changes.
using Devices = std::vector<const DeviceEntry*>;

/// A device that conflicts with a formed group. It stops, and the others continue to wait.
struct Rejected {
  const DeviceEntry* device = nullptr;
  AdmissionError why;
};

/// Equal for all devices that have folded the same prefix. A group of fixed size needs all its devices; any
/// other group any number from min to max.
///
/// The configuration of the last view remains valid while a device has it, and devices with a different
/// configuration are rejected. If no device has it and all share a different one, that one is used. Places go
/// to members of the last view with unchanged claims, then in order of HELLO. Devices with a conflicting
/// claim are rejected. Without a free place, devices of a group of fixed size are rejected, others wait.
/// Before the first view of a run no device is rejected, since there is no formed group. Accused devices are
/// left out of one view if enough others remain; otherwise they are in it and adopt its state. The same for
/// newcomers that copy a large state.
struct NextView {
  Devices devices;
  std::vector<Rejected> rejected;    ///< sorted by id
  std::vector<std::string> accused;  ///< ready devices whose state cannot be the target, sorted
  AdmissionError error;              ///< obstacle to a view of `devices`
  [[nodiscard]] const AdmissionError* why_rejected(const std::string& device) const;
  [[nodiscard]] bool is_accused(const std::string& device) const;
};
/// The next view of the ready devices (`only_live`: of the live devices), for a group of these sizes.
NextView next_view(const Fold& fold, bool only_live, const GroupSizes& sizes);

/// Whether the device is in the session with which it was a member of the last view.
bool is_of_last_view(const Fold& fold, const DeviceEntry& device);
/// Whether a view may start from the ready device's state: the saved state, or an intentionally older one.
bool serves(const Fold& fold, const DeviceEntry& device);
/// Whether it may start from the state of at least one of these ready devices.
bool any_serves(const Fold& fold, const Devices& devices);

/// Why `self` is not in the complete group, which has confirmed its view after the HELLO of `self`. None if
/// there is no such group, or `self` is in it.
AdmissionError outside(const Fold& fold, const std::string& self);

/// Why a process with this HELLO cannot replace the present session of its device: its state belongs to no
/// view of this run; or it is older than the group's saved state, which no other device has; or it conflicts
/// with the group while the present session does not. None if it can, or no session is present.
AdmissionError cannot_replace(const Fold& fold, const Hello& hello);

/// The obstacle if the state belongs to no view of this run. None if it may belong to one.
AdmissionError wrong_state(const Fold& fold, const std::string& job, const std::string& device,
                           const Stamp& state);

/// Known ids that are missing for a next view of `wanted` devices, followed by a phrase such as "2 more
/// devices".
std::vector<std::string> missing_devices(const Fold& fold, const NextView& next, std::uint32_t wanted);

}  // namespace rivulet::sync::membership
