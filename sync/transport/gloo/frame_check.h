#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "sync/transport/transport.h"

/// What Gloo's framing may say on a connection of a view. Gloo itself believes its peers: what it has no
/// place for ends the process. Values only; no Gloo is needed to use it.
namespace rivulet::sync::gloo_door {

/// Six words before each message, as they lie on the wire. `length` bytes follow a message.
struct Preamble {
  enum Opcode : std::uint64_t { pinned = 0, message = 1, send_ready = 2, receive_ready = 3 };
  std::uint64_t bytes = 0;  ///< this preamble and what follows it
  std::uint64_t opcode = 0;
  std::uint64_t slot = 0;  ///< a tag, which names lane and mesh
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  ///< send_ready, receive_ready: of the message that is meant
  std::uint64_t receiver_offset = 0;
};
static_assert(sizeof(Preamble) == 48);

// c10d makes one full mesh per device it is given and picks it by tag modulo their number. The same device
// three times: data to higher ranks, data to lower ranks, and sentinels have connections of their own. A
// connection is locked while something large is written to it, and the device's thread spins when it may not
// read from it meanwhile; last words and the end of a peer do not queue behind payloads.
inline constexpr int meshes = 3;
inline constexpr int sentinel_tag = 1000 * meshes + 2;
constexpr int data_tag(int tag, bool upwards) {
  return meshes * tag + (upwards ? 0 : 1);
}
constexpr bool is_tag(std::uint64_t slot) {
  const bool data = slot >= meshes && slot < meshes * lanes_end && slot % meshes != 2;
  return data || slot == sentinel_tag;
}

/// Of one connection, by the thread that reads it.
class FrameCheck {
 public:
  /// Gloo remembers what is announced before the other side has posted it, a word each and without a bound.
  /// A state of 32 GB is as many chunks.
  static constexpr std::uint64_t announced_most = std::uint64_t{1} << 20U;
  /// What this side has posted on the connection so far.
  struct Posted {
    std::uint64_t sends = 0;
    std::uint64_t receives = 0;
  };

  /// Null: Gloo has a place for it. Else why not, for people. Once for each preamble.
  const char* refuse(const Preamble& p, const Posted& posted) {
    if (p.offset != 0 || p.receiver_offset != 0 || !is_tag(p.slot)) return "a message of no lane";
    if (p.opcode == Preamble::message) return nullptr;
    if (p.opcode != Preamble::send_ready && p.opcode != Preamble::receive_ready)
      return "a message of an unknown kind";
    if (p.bytes != sizeof(Preamble)) return "an announcement with bytes behind it";
    const bool sends = p.opcode == Preamble::send_ready;
    std::uint64_t& said = announced_[sends ? 0 : 1];
    return ++said > (sends ? posted.receives : posted.sends) + announced_most
               ? "announcements of what nobody waits for"
               : nullptr;
  }
  /// Of a message whose receive is known. Less than was awaited would leave the rest as it was.
  static const char* refuse_length(const Preamble& p, std::uint64_t awaited) {
    if (p.length > awaited) return "a longer message than was awaited";
    if (p.length < awaited) return "a shorter message than was awaited";
    return p.bytes == sizeof(Preamble) + p.length ? nullptr : "a message that says two lengths";
  }

 private:
  std::array<std::uint64_t, 2> announced_{};  ///< sends, receives
};

}  // namespace rivulet::sync::gloo_door
