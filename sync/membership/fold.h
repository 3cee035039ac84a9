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

/// Increases when the fold gives a different result for the same records, or when devices write records that
/// other builds fold differently. Such builds cannot form a group, so the version is part of HELLO's hash.
inline constexpr int fold_version = 6;

/// The previous session of a device.
struct Predecessor {
  std::int64_t session = -1;
  std::string host;
  std::int64_t pid = 0;
  bool over = true;  ///< it left, or its overlap with the successor is recorded or cannot be proved
  bool operator==(const Predecessor&) const = default;
};

/// The state of a device according to the log.
struct DeviceEntry {
  std::int64_t session = -1;  ///< offset of its latest HELLO
  Hello hello;
  std::optional<Ready> ready;       ///< READY of this session, for view = closed view + 1
  std::int64_t ready_at = -1;       ///< offset of that READY
  std::int64_t copy_at = -1;        ///< offset of the first READY that asked this donor for a copy; -1: none
  std::optional<std::string> left;  ///< reason of this session's LEAVE
  WhyNot left_for = WhyNot::none;   ///< its cause, for the decisions of the others
  bool left_in_order = false;       ///< it left on request, without an error
  bool limited = false;             ///< the last READY of the device said so (see counting.h)
  std::int64_t last_seen = -1;      ///< offset of the last counted record of this session
  Predecessor before;
  std::vector<std::string> past_nonces;  ///< nonces of its last sessions: their HELLOs are not accepted again
  std::vector<std::int64_t> swaps;   ///< log times (ms) at which two live sessions were found, newest last
  std::int64_t contested = -1;       ///< offset of the swap that exceeded the limit: earlier sessions end
  std::vector<std::int64_t> breaks;  ///< log times (ms) at which it was lost without leaving, newest last
  std::optional<std::int64_t> expelled_ms;  ///< log time at which a view last left its state out as wrong
  bool expelled_again = false;              ///< twice within expelled_within_ms in this session: it must end
  bool operator==(const DeviceEntry&) const = default;
};
inline constexpr std::size_t past_nonces_max = 4;
inline constexpr std::size_t breaks_max = 8;
inline constexpr std::size_t swaps_max = 3;  ///< this many within swaps_within_ms stop both sessions
inline constexpr std::int64_t swaps_within_ms = std::int64_t{5} * 60 * 1000;
inline constexpr std::int64_t expelled_within_ms = std::int64_t{10} * 60 * 1000;

/// The current run of the job. View numbers continue across runs, so states of earlier runs have smaller
/// lineages.
struct Run {
  std::uint64_t number = 0;        ///< 0: no HELLO yet
  std::int64_t began = -1;         ///< offset of its first HELLO
  std::uint64_t views_before = 0;  ///< views closed before it
  bool operator==(const Run&) const = default;
};

/// Clocks of an agreed state.
using Clocks = ViewSpec::Clocks;

/// Request of a HELLO that all devices repeat their READYs. At most one per second of log time: N devices
/// that start together would otherwise write N² READYs. A HELLO in between leaves its request due, until a
/// READY makes it, which all devices repeat for that purpose if the group has not formed by then.
struct ReadyRequest {
  static constexpr std::int64_t every_ms = 1000;
  std::int64_t up_to = -1;      ///< READYs up to this offset do not count
  std::int64_t ms = -every_ms;  ///< log time of the request
  bool due = false;             ///< a later HELLO also requests them
  bool operator==(const ReadyRequest&) const = default;
};

/// The last closed view.
struct ClosedView {
  std::uint64_t number = 0;                      ///< 0: none yet
  std::uint64_t token = 0;                       ///< offset of the accepted CLOSE
  SharedList<std::string> members;               ///< sorted; index = rank
  std::map<std::string, std::int64_t> sessions;  ///< sessions of the members at the CLOSE
  Stamp target;                     ///< best state among the members' READYs, from which all start
  std::string digest;               ///< digest of the target
  SharedList<std::string> holders;  ///< members that have the target, sorted; the others receive it from them
  SharedList<std::uint32_t> holder_ranks;  ///< ranks of these members
  std::int64_t confirmed =
      -1;                   ///< offset of the last CLOSE repeated by a member to show that the view is alive
  std::string config_hash;  ///< the group's configuration. Empty: unknown
  SharedList<std::vector<std::string>> owners;  ///< partitions by rank, as claimed in the members' HELLOs
  /// Start of the counts for --stop-after rows and rounds; none: no member has a limit, and none that is
  /// away.
  std::optional<Clocks> counts_from;
  bool ended = false;  ///< ended in an orderly way: a run that resumes from its state restarts the counts
  bool operator==(const ClosedView&) const = default;
};

/// A state that enough devices have on disk. Never rolls back.
struct Committed {
  Stamp stamp;
  std::string digest;
  auto operator<=>(const Committed&) const = default;
};

inline constexpr std::size_t saved_max = 8;  ///< newest states kept that are on fewer disks than the quorum
inline constexpr std::size_t devices_max = 16'384;  ///< known ids; the longest silent one is removed first
inline constexpr std::size_t addresses_max_per_member = 64;

/// Number of ignored records by reason.
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

/// Rules that protect committed states, as switches: tests disable one and check that this is detected. Not
/// configurable.
struct Rules {
  bool fence = true;      ///< SAVED counts only in its own view and session
  bool guard = true;      ///< no view starts from less than the committed state
  bool restamp = true;    ///< an adopted state belongs to the view that adopts it
  bool cool_down = true;  ///< who is lost again and again waits; protects the others' time, not states
  bool operator==(const Rules&) const = default;
};

/// The state of the group as a pure function of a log prefix: equal prefixes give equal folds.
struct Fold {
  std::map<std::string, DeviceEntry> devices;
  ClosedView view;
  std::map<std::pair<std::uint64_t, std::string>, std::vector<std::byte>>
      addresses;  ///< (token, key), of the current view and of copies
  Committed committed;
  std::vector<std::string> committed_by;  ///< devices that announced the committed state, sorted
  std::map<Committed, std::vector<std::string>> saved;  ///< newer than committed -> members that have it
  Run run;
  std::int64_t stopped_at = -1;  ///< offset of the last STOP: sessions before it end
  IgnoredRecords ignored;        ///< void, stale or invalid records
  std::int64_t next_offset = 0;  ///< offset of the last folded record, plus one
  std::int64_t last_hello = -1;  ///< offset of the newest HELLO of any device
  std::int64_t time_ms = 0;      ///< greatest log time so far
  ReadyRequest asked;
  std::int64_t snapped_at = -1;  ///< offset of the last correct SNAP
  Rules rules = {};
  bool operator==(const Fold&) const = default;
};

/// Number of disks that must have a state to commit it: checkpoint.quorum, limited to the largest size of the
/// group. A view with fewer members commits nothing.
std::size_t quorum_of(const Hello& hello);
/// Whether the device has a READY for the next view in its session.
bool is_ready(const Fold& fold, const DeviceEntry& device);
/// Whether that READY is newer than the last request to repeat it. A process killed while the group forms
/// leaves a READY behind, without a LEAVE to revoke it. So a HELLO requests all READYs again (ReadyRequest),
/// unless its device cools down, and live devices repeat theirs (see Membership). A READY of a dead process
/// that still counts costs the deadline of one connection. In a group that changes its size, the first READY
/// of a member that leaves the view is also a request.
bool is_live(const Fold& fold, const DeviceEntry& device);

/// Whether the device, if it is not a member, copies the group's state before it joins. After some failed
/// copies, it receives the state inside the view, and the others wait.
bool copies_first(const Ready& ready);
inline constexpr std::uint64_t copies_max = 3;

/// Why a view of a group of these sizes (job.devices in the closer's HELLO) cannot be closed now;
/// WhyNot::none if one can. Ignores devices rejected by a formed group.
AdmissionError why_not_closable(const Fold& fold, const GroupSizes& sizes);

/// Whether the device's session has neither left nor been stopped. Killed processes leave sessions open.
bool is_open(const Fold& fold, const DeviceEntry& device);

/// Effect of a HELLO of `device` that requests a new run. It joins a run without views, and a run that it was
/// in with the same request and has not left (restarted by its supervisor). It begins a new run if all others
/// have left or were stopped. Otherwise it is refused: a run does not end while devices are in it.
enum class NewRun : std::uint8_t { joins, begins, refused };
NewRun new_run_by(const Fold& fold, const std::string& device);

/// Text for users about NewRun::refused: the devices still in the current run, and what to do.
std::string why_no_new_run(const Fold& fold, const std::string& job, const std::string& device);

/// Whether a state of this stamp can belong to this run. The untrained state belongs to any run.
bool is_of_run(const Fold& fold, const Stamp& stamp);

/// Ranks of `ids` among `members`; both are sorted, and all ids are members.
std::vector<std::uint32_t> ranks_of(const std::vector<std::string>& ids,
                                    const std::vector<std::string>& members);

/// Applies a record read at `offset`. `time_ms`: append time by the log's clock. Modifies only `fold`.
void apply(Fold& fold, std::int64_t offset, const ControlRecord& record, std::int64_t time_ms = 0);
/// The same for the bytes of a log entry. Returns the decoded record, whether it counted or not.
std::optional<ControlRecord> apply(Fold& fold, const LogEntry& entry, const std::string& job);

/// Whether every member of the closed view still has the session of its CLOSE.
bool view_intact(const Fold& fold);
/// Whether a member has left the closed view, or is ready for the next one.
bool view_left(const Fold& fold);

}  // namespace rivulet::sync::membership
