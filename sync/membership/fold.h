#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/shared_list.h"
#include "sync/membership/records.h"
#include "sync/message/view.h"

namespace rivulet::sync::membership {

/// Goes up when the fold comes to something else with the same records, or devices write what other builds
/// fold otherwise: such builds are no group, so it is in the hash of HELLO.
inline constexpr int fold_version = 4;

/// The session of a device before its present one.
struct Predecessor {
  std::int64_t session = -1;
  std::string host;
  std::int64_t pid = 0;
  bool over = true;  ///< it has left: that it lived beside its successor is known already, or cannot be shown
  bool operator==(const Predecessor&) const = default;
};

/// A device as the log knows it.
struct DeviceEntry {
  std::int64_t session = -1;  ///< offset of its latest HELLO
  Hello hello;
  std::optional<Ready> ready;       ///< of this session, for view = closed view + 1
  std::int64_t ready_at = -1;       ///< offset of that READY
  std::optional<std::string> left;  ///< of this session: why
  WhyNot left_for = WhyNot::none;   ///< same, for the others to decide by
  bool left_in_order = false;       ///< same: it was asked to, and did not end by an error
  std::int64_t heard = -1;          ///< offset of the last record of this session that counted
  Predecessor before;
  std::vector<std::string> past_nonces;  ///< of its last sessions: their HELLOs are not taken again
  std::vector<std::int64_t> swaps;  ///< log times (ms) at which two living sessions were found, newest last
  std::int64_t contested = -1;      ///< offset of the swap that was one too many: sessions before it end
  bool operator==(const DeviceEntry&) const = default;
};
inline constexpr std::size_t past_nonces_max = 4;
inline constexpr std::size_t swaps_max = 3;  ///< within swaps_within_ms they stop both
inline constexpr std::int64_t swaps_within_ms = std::int64_t{5} * 60 * 1000;

/// Which run of the job the log is in. View numbers continue: a state of an earlier run has a smaller
/// lineage.
struct Run {
  std::uint64_t number = 0;        ///< 0 = nobody has written HELLO yet
  std::int64_t began = -1;         ///< offset of the HELLO it began with
  std::uint64_t views_before = 0;  ///< views closed before it
  bool operator==(const Run&) const = default;
};

/// Clocks of an agreed state.
using Clocks = ViewSpec::Clocks;

/// The view the log has closed last.
struct ClosedView {
  std::uint64_t number = 0;                      ///< 0 = none yet
  std::uint64_t token = 0;                       ///< offset of the accepted CLOSE
  SharedList<std::string> members;               ///< sorted; index = rank
  std::map<std::string, std::int64_t> sessions;  ///< of the members when it was closed
  Stamp target;                     ///< best state among the members' READYs: what everybody starts from
  std::string digest;               ///< of the target
  SharedList<std::string> holders;  ///< members that hold it, sorted; the others get it from them
  SharedList<std::uint32_t> holder_ranks;  ///< the same by rank
  std::int64_t confirmed =
      -1;                   ///< offset of the last CLOSE that a member repeated to show that the view lives
  std::string config_hash;  ///< of all members: the configuration that stands. Empty: not known
  SharedList<std::vector<std::string>>
      owners;  ///< by rank: the member's partitions, as its HELLO claims them
  /// Where --stop-after rows and rounds count from; none: nobody was started with one.
  std::optional<Clocks> counts_from;
  bool ended = false;  ///< in good order: a run that resumes from its state counts anew
  bool operator==(const ClosedView&) const = default;
};

/// A state that enough devices have on disk. Never goes back.
struct Committed {
  Stamp stamp;
  std::string digest;
  auto operator<=>(const Committed&) const = default;
};

inline constexpr std::size_t saved_max = 8;  ///< states that are on some disks but not on enough: the newest
inline constexpr std::size_t devices_max = 16'384;  ///< known ids; the longest silent one makes room
inline constexpr std::size_t addresses_max_per_member = 64;

/// How many records were ignored, by reason.
class IgnoredRecords {
 public:
  void add(Ignored reason) noexcept { ++counts_.at(static_cast<std::size_t>(reason)); }
  [[nodiscard]] std::uint64_t of(Ignored reason) const noexcept {
    return counts_.at(static_cast<std::size_t>(reason));
  }
  [[nodiscard]] std::uint64_t total() const noexcept;
  bool operator==(const IgnoredRecords&) const = default;

 private:
  std::array<std::uint64_t, ignored_reasons> counts_{};
};

/// The rules that keep what is committed, each as a switch: a test takes one away and sees
/// that this is found. No configuration reaches them.
struct Rules {
  bool fence = true;    ///< SAVED counts in its own view and session only
  bool guard = true;    ///< no view starts from less than is committed
  bool restamp = true;  ///< an adopted state becomes one of the view that adopts it
  bool operator==(const Rules&) const = default;
};

/// The state of the group as a pure function of a log prefix: equal prefixes, equal folds, on every device.
struct Fold {
  std::map<std::string, DeviceEntry> devices;
  ClosedView view;
  std::map<std::pair<std::uint64_t, std::string>, std::vector<std::byte>>
      addresses;  ///< (token, key), current view only
  Committed committed;
  std::map<Committed, std::vector<std::string>> saved;  ///< newer than committed -> members that have it
  Run run;
  std::int64_t stopped_at = -1;  ///< offset of the last STOP: sessions before it end
  IgnoredRecords ignored;        ///< records that were void, stale or invalid
  std::int64_t next_offset = 0;  ///< everything below has been folded: of the last record, plus one
  std::int64_t last_hello = -1;  ///< offset of the newest HELLO of anybody
  std::int64_t snapped_at = -1;  ///< offset of the last SNAP that was right
  Rules rules = {};
  bool operator==(const Fold&) const = default;
};

/// Disks that must have a state before it is committed: checkpoint.quorum, at most the size of the group.
std::size_t quorum_of(const Hello& hello);
/// "It wants to be in the next view", written at any time of its session.
bool is_ready(const Fold& fold, const DeviceEntry& device);
/// It wrote that after the newest HELLO of anybody. A process that was killed while the group formed leaves a
/// READY behind that nothing takes back (a LEAVE would); so a READY counts only until the next HELLO, and
/// a living device writes it again when asked (see Membership). Hence no view closes with a session that was
/// dead before the last start of a device.
bool is_live(const Fold& fold, const DeviceEntry& device);

/// Why no view of `devices` (job.devices, of the closer's HELLO) can be closed now; WhyNot::none:
/// it can. Devices that are rejected by a group which has formed are not counted.
Obstacle why_not_closable(const Fold& fold, std::uint32_t devices);

/// Its session has neither left nor been stopped. A killed process leaves an open one behind.
bool is_open(const Fold& fold, const DeviceEntry& device);

/// What a HELLO of `device` that asks for a new run does. A run that nobody has formed a view of is joined,
/// and so is the present one by a device that was in it with the same wish and did not leave (its supervisor
/// has started it again). It begins a new run when everybody else has left or was stopped, and is refused
/// otherwise: a run does not end under those who are in it.
enum class NewRun : std::uint8_t { joins, begins, refused };
NewRun new_run_by(const Fold& fold, const std::string& device);

/// Of NewRun::refused: who is still in the present run, and what to do. For people.
std::string why_no_new_run(const Fold& fold, const std::string& job, const std::string& device);

/// A state of this stamp can be of this run; the state that nothing has been trained on can be of any.
bool is_of_run(const Fold& fold, const Stamp& stamp);

/// Ranks of `ids` among `members`; both are sorted, and all ids are members.
std::vector<std::uint32_t> ranks_of(const std::vector<std::string>& ids,
                                    const std::vector<std::string>& members);

/// Applies one record read at `offset`, which the log got at `time_ms` by its own clock. Pure apart from
/// `fold`.
void apply(Fold& fold, std::int64_t offset, const ControlRecord& record, std::int64_t time_ms = 0);
/// The same for the bytes of a log; the record if it could be read, whether it counted or not.
std::optional<ControlRecord> apply(Fold& fold, const LogEntry& entry, const std::string& job);

/// True while every member of the closed view still has the session it was closed with.
bool view_intact(const Fold& fold);
/// True when a member of the closed view is ready for the next one or has left: it stops in this one.
bool view_left(const Fold& fold);

}  // namespace rivulet::sync::membership
