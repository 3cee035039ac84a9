#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sync/membership/records.h"

namespace rivulet::sync::membership {

/// A device as the log knows it.
struct DeviceEntry {
  std::int64_t session = -1;  ///< offset of its latest HELLO
  Hello hello;
  std::optional<Ready> ready;  ///< of this session, for view = closed view + 1
  std::int64_t ready_at = -1;  ///< offset of that READY
  bool operator==(const DeviceEntry&) const = default;
};

/// The view the log has closed last.
struct ClosedView {
  std::uint64_t number = 0;                      ///< 0 = none yet
  std::uint64_t token = 0;                       ///< offset of the accepted CLOSE
  std::vector<std::string> members;              ///< sorted; index = rank
  std::map<std::string, std::int64_t> sessions;  ///< of the members when it was closed
  Stamp target;                      ///< best state among the members' READYs: what everybody starts from
  std::string digest;                ///< of the target
  std::vector<std::string> holders;  ///< members that hold it, sorted; the others get it from them
  std::int64_t confirmed =
      -1;  ///< offset of the last CLOSE that a member repeated to show that the view lives
  bool operator==(const ClosedView&) const = default;
};

/// A state that enough devices have on disk (promises.md §5.3 B8). Never goes back.
struct Committed {
  Stamp stamp;
  std::string digest;
  auto operator<=>(const Committed&) const = default;
};

inline constexpr std::size_t saved_max = 8;  ///< states that are on some disks but not on enough: the newest
inline constexpr std::size_t devices_max = 4096;  ///< known ids; the longest silent one makes room
inline constexpr std::size_t addresses_max_per_member = 64;

/// The state of the group as a pure function of a log prefix: equal prefixes, equal folds, on every device.
struct Fold {
  std::map<std::string, DeviceEntry> devices;
  ClosedView view;
  std::map<std::pair<std::uint64_t, std::string>, std::vector<std::byte>>
      addresses;  ///< (token, key), current view only
  Committed committed;
  std::map<Committed, std::vector<std::string>> saved;  ///< newer than committed -> members that have it
  std::uint64_t ignored = 0;                            ///< records that were void, stale or invalid
  std::int64_t next_offset = 0;                         ///< everything below has been folded
  std::int64_t last_hello = -1;                         ///< offset of the newest HELLO of anybody
  bool operator==(const Fold&) const = default;
};

/// Disks that must have a state before it is committed: checkpoint.quorum, at most the size of the group.
std::size_t quorum_of(const Hello& hello);
/// "It wants to be in the next view", said at any time of its session.
bool is_ready(const Fold& fold, const DeviceEntry& device);
/// It said so after the newest HELLO of anybody. A process that was killed while the group formed leaves a
/// READY behind that nothing takes back; so a READY counts only until the next HELLO, and whoever lives says
/// it again when asked (see Membership). Hence no view closes with a session that was dead before the last
/// start of a device.
bool is_live(const Fold& fold, const DeviceEntry& device);

/// Two devices that cannot be in one group, in one sentence for people: configuration (first differing key,
/// both values, both devices), a partition claimed twice, or too many devices. Considers devices that are
/// ready
/// (`only_live`: live) and, for a `self` outside a view that has confirmed itself after self's HELLO, its
/// members.
std::string conflict(const Fold& fold, const std::string& self, bool only_live);

/// What must hold for a CLOSE of fold.view.number + 1: exactly `devices` live READYs for it, equal
/// configuration hashes, no partition claimed twice. Empty = it may close; otherwise for whom or what it
/// waits. `devices` of a CLOSE read from the log is what the closer said in its HELLO.
std::string why_not_closable(const Fold& fold, std::uint32_t devices);

/// Applies one record read at `offset`. Pure apart from `fold`.
void apply(Fold& fold, std::int64_t offset, const ControlRecord& record);

/// True while every member of the closed view still has the session it was closed with.
bool view_intact(const Fold& fold);
/// True when a member of the closed view is ready for the next one: it has stopped in this one.
bool view_left(const Fold& fold);

}  // namespace rivulet::sync::membership
