#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/group_sizes.h"
#include "core/result.h"
#include "core/stamp.h"
#include "sync/membership/admission_error.h"

/// Records of the control topic. JSON, versioned, up to 64 KiB. Unknown types and versions are counted and
/// ignored, so later versions can add records.
namespace rivulet::sync::membership {

inline constexpr int protocol_version = 1;
inline constexpr std::size_t record_max_bytes = std::size_t{64} * 1024;

/// Begins a new session of a device and voids the records of its older sessions. Its log offset is the
/// session id.
struct Hello {
  std::string device;
  std::string nonce;  ///< random; identifies the process's own HELLO when it is read back
  std::string host;
  std::int64_t pid = 0;
  GroupSizes devices;                         ///< job.devices
  std::string config_hash;                    ///< hash of the group keys
  std::map<std::string, std::string> config;  ///< the group keys and values, to name a mismatch
  std::vector<std::string> partitions;        ///< claimed partitions, as "topic:partition", sorted
  bool new_run = false;                       ///< requests a new run (see new_run_by() in fold.h)
  std::optional<Stamp> has_state = {};        ///< its current state
  std::int64_t unheard_since = -1;  ///< repeated HELLO: offset of the refusal, since which the present
                                    ///< session has written nothing (see displaces() in fold.cpp)
  bool operator==(const Hello&) const = default;
};
/// How a device that waits to join gets a large state: it copies it from a member while the group trains.
struct Copying {
  std::uint64_t bytes = 0;   ///< size of a state of this job; 0: small, a device receives it inside its view
  std::string donor = {};    ///< member that is asked for a copy; empty: none
  std::uint64_t failed = 0;  ///< number of copies that have failed while it waits
  bool operator==(const Copying&) const = default;
};
/// "I have stopped in all views <= view - 1 and am ready for `view`."
struct Ready {
  std::string device;
  std::int64_t session = -1;
  std::uint64_t view = 0;
  Stamp stamp;             ///< stamp of its current state
  std::string digest;      ///< digest of that state
  std::string reason;      ///< why it left the last view; empty at start
  std::uint64_t rows = 0;  ///< row clock of that state
  bool limited = false;    ///< it was started with --stop-after rows or rounds
  bool rolls_back =
      false;  ///< its state is intentionally older than its last saved one: see serves() in next_view.cpp
  std::vector<std::string> lost = {};       ///< members of the last view that it has lost, sorted
  std::vector<std::string> unreached = {};  ///< of these, members that it could not connect to, sorted
  std::vector<std::string> accuses = {};    ///< members whose state or messages were wrong, sorted
  Copying copy = {};
  std::vector<std::string> copied = {};  ///< devices that get the last rounds of a copy from it, sorted
  bool operator==(const Ready&) const = default;
};
/// Tries to close `view`. The first valid one wins; its log offset becomes the view's token.
struct Close {
  std::string device;
  std::int64_t session = -1;
  std::uint64_t view = 0;
  bool operator==(const Close&) const = default;
};
/// "This state is on my disk, synced": counts towards committing it, in the view of the record.
struct Saved {
  std::string device;
  std::int64_t session = -1;
  std::uint64_t view = 0;
  Stamp stamp;
  std::string digest;
  std::string file_hash;  ///< the SHA-256 at the end of the checkpoint file
  bool operator==(const Saved&) const = default;
};
/// Rendezvous of a view: one key of the address book.
struct Addr {
  std::string device;
  std::int64_t session = -1;
  std::uint64_t token = 0;
  std::string key;
  std::vector<std::byte> value;  ///< base64 on the wire
  bool operator==(const Addr&) const = default;
};

/// What a LEAVE stops in an orderly way, without an error.
enum class Ends : std::uint8_t {
  nothing,  ///< the device stops because of an error
  device,   ///< this device left on request
  group,    ///< all stop in the same round: --stop-after, or STOP
};

/// "This session joins no other view": it ends at the next round boundary. A LEAVE from a session that a
/// newer one of the same device has replaced proves that both sessions were alive at the same time.
struct Leave {
  std::string device;
  std::int64_t session = -1;
  std::string reason;           ///< text for users
  WhyNot cause = WhyNot::none;  ///< cause for which the others also stop
  Ends ends = Ends::nothing;
  bool operator==(const Leave&) const = default;
};
/// Stops every session that began before it: a user has stopped the whole job. Devices never write it.
struct Stop {
  std::string nonce;  ///< random; identifies the writer's own STOP when it is read back
  std::string host;
  std::int64_t pid = 0;
  bool operator==(const Stop&) const = default;
};
/// The fold of all records below `covers`, as text, with its hash. A device with the same prefix compares it;
/// a device whose log lacks the beginning starts from it.
struct Snap {
  std::string device;
  std::int64_t session = -1;
  std::int64_t covers = 0;  ///< offset of the first record not covered
  std::string hash;         ///< hash of `fold`
  std::string fold;         ///< see snapshot.h
  bool operator==(const Snap&) const = default;
};

using ControlRecord = std::variant<Hello, Ready, Close, Saved, Addr, Leave, Stop, Snap>;

/// Why a record of the log has no effect.
enum class Ignored : std::uint8_t {
  unreadable,     ///< not a JSON object, or a field is missing, of the wrong kind or out of bounds
  oversized,      ///< more than record_max_bytes
  unknown,        ///< a type or version of a different build
  foreign,        ///< a record of a different job
  replayed,       ///< at an offset that was read before, or a repeated HELLO or SAVED
  stale_session,  ///< not from the device's current session, or from one that has left or was stopped
  wrong_view,     ///< a record of a past or future view, or not from a member
  impossible,     ///< a state from a later view or an earlier run, or a snapshot that differs from the fold
  refused,        ///< readable, but its condition is not met: early CLOSE, new run over an open one
  full,           ///< its table has reached its limit
};
inline constexpr std::size_t ignored_reasons = 10;
/// Name as a label, such as "stale_session".
std::string_view name_of(Ignored reason) noexcept;

/// Errors: protocol (too long).
Result<std::vector<std::byte>> encode(const ControlRecord& record, const std::string& job);
/// Errors: protocol (names the cause: not JSON, wrong version, unknown type, missing or oversized field,
/// other job). Sets `reason`, if given, on error.
Result<ControlRecord> decode(std::span<const std::byte> bytes, const std::string& job,
                             Ignored* reason = nullptr);

}  // namespace rivulet::sync::membership
