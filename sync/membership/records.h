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

#include "core/result.h"
#include "core/stamp.h"
#include "sync/membership/obstacle.h"

/// Records of the control topic. JSON, versioned, at most 64 KiB; unknown types and
/// versions are counted and ignored, so that later versions can add records.
namespace rivulet::sync::membership {

inline constexpr int protocol_version = 1;
inline constexpr std::size_t record_max_bytes = std::size_t{64} * 1024;

/// A new session of a device: voids the records of its older sessions. The log offset it is read back at is
/// its session id.
struct Hello {
  std::string device;
  std::string nonce;  ///< random; distinguishes the own HELLO when reading back
  std::string host;
  std::int64_t pid = 0;
  std::uint32_t devices = 0;                  ///< job.devices
  std::string config_hash;                    ///< over the group keys
  std::map<std::string, std::string> config;  ///< the group keys and values, so that a mismatch can be named
  std::vector<std::string> partitions;        ///< claimed, as "topic:partition", sorted
  bool new_run = false;                       ///< wants to start over (see new_run_by() in fold.h)
  std::optional<Stamp> holds = {};            ///< the state it brings
  std::int64_t unheard_since = -1;  ///< repeated: at this offset it was refused, and the session that has
                                    ///< its place has not been heard since (see displaces() in fold.cpp)
  bool operator==(const Hello&) const = default;
};
/// "I have stopped in every view <= view - 1 and want to be in `view`."
struct Ready {
  std::string device;
  std::int64_t session = -1;
  std::uint64_t view = 0;
  Stamp stamp;             ///< of the state it holds
  std::string digest;      ///< of that state
  std::string reason;      ///< why it left the last view; empty at start
  std::uint64_t rows = 0;  ///< row clock of that state
  bool limited = false;    ///< it was started with --stop-after rows or rounds
  bool goes_back =
      false;  ///< it holds less than it once saved, and that is to be: see serves() in next_view.cpp
  bool operator==(const Ready&) const = default;
};
/// Tries to close `view`: the first valid one wins, its log offset is the view's token.
struct Close {
  std::string device;
  std::int64_t session = -1;
  std::uint64_t view = 0;
  bool operator==(const Close&) const = default;
};
/// "This state is on my disk, synced": counts towards committing it, in the view it was written in.
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

/// What a LEAVE ends in good order, and not by an error.
enum class Ends : std::uint8_t {
  nothing,  ///< an error
  device,   ///< this device was asked to go
  group,    ///< all end in the same round: --stop-after, or STOP
};

/// "This session wants no other view": at the next boundary of rounds it ends. From a session that a newer
/// one of the same device has replaced it is the proof that both lived at once.
struct Leave {
  std::string device;
  std::int64_t session = -1;
  std::string reason;           ///< for people
  WhyNot cause = WhyNot::none;  ///< what the others end by, too
  Ends ends = Ends::nothing;
  bool operator==(const Leave&) const = default;
};
/// Ends every session that began before it: somebody has stopped the whole job. No device writes this.
struct Stop {
  std::string nonce;  ///< random; distinguishes the own STOP when reading back
  std::string host;
  std::int64_t pid = 0;
  bool operator==(const Stop&) const = default;
};
/// The fold of everything below `covers`, as text, with its hash: a device that has folded the same compares
/// it, a device that reads a log whose beginning is gone starts from it.
struct Snap {
  std::string device;
  std::int64_t session = -1;
  std::int64_t covers = 0;  ///< offset of the first record that is not part of it
  std::string hash;         ///< of `fold`
  std::string fold;         ///< see snapshot.h
  bool operator==(const Snap&) const = default;
};

using ControlRecord = std::variant<Hello, Ready, Close, Saved, Addr, Leave, Stop, Snap>;

/// Why a record of the log changes nothing.
enum class Ignored : std::uint8_t {
  unreadable,     ///< not a JSON object, or a field is missing, of the wrong kind or out of bounds
  oversized,      ///< more than record_max_bytes
  unknown,        ///< a type or version of another build
  foreign,        ///< of another job
  replayed,       ///< at an offset that has been read, or a HELLO or SAVED that has been written
  stale_session,  ///< of a session that is not the device's present one, or has left or been stopped
  wrong_view,     ///< of a view that is over or not yet to be, or of no member of it
  impossible,     ///< a state that cannot be: of a later view or an earlier run; a snapshot that is another
  refused,        ///< understood, but its condition does not hold: CLOSE too early, new run over an open one
  full,           ///< the bound of its table is reached
};
inline constexpr std::size_t ignored_reasons = 10;
/// As a label: "stale_session".
std::string_view name_of(Ignored reason) noexcept;

/// Errors: protocol (too long).
Result<std::vector<std::byte>> encode(const ControlRecord& record, const std::string& job);
/// Errors: protocol (not JSON, wrong version, unknown type, missing or oversized field, other job; says
/// which). `reason`, if given, is set with the error.
Result<ControlRecord> decode(std::span<const std::byte> bytes, const std::string& job,
                             Ignored* reason = nullptr);

}  // namespace rivulet::sync::membership
