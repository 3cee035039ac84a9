#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "sync/transport/transport.h"

/// The frames that are valid on a connection of a view. Gloo trusts its peers: an unexpected frame ends the
/// process. Values only; does not need Gloo.
namespace rivulet::sync::gloo_door {

/// Six words before each message, as on the wire. A message is followed by `length` bytes.
struct Preamble {
  enum Opcode : std::uint64_t { pinned = 0, message = 1, send_ready = 2, receive_ready = 3 };
  std::uint64_t bytes = 0;  ///< size of this preamble and the bytes that follow
  std::uint64_t opcode = 0;
  std::uint64_t slot = 0;  ///< a tag that names lane and mesh
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  ///< send_ready, receive_ready: length of the announced message
  std::uint64_t receiver_offset = 0;
};
static_assert(sizeof(Preamble) == 48);

// c10d makes one full mesh per given device, and selects it by tag modulo the number of devices. The same
// device is given three times: data to higher ranks, data to lower ranks, and sentinels have separate
// connections. A large write locks its connection, and the device's thread spins if it cannot read from it.
// With separate connections, obituaries and disconnects do not queue behind payloads.
inline constexpr int meshes = 3;
inline constexpr int sentinel_tag = 1000 * meshes + 2;
constexpr int data_tag(int tag, bool upwards) {
  return meshes * tag + (upwards ? 0 : 1);
}
constexpr bool is_tag(std::uint64_t slot) {
  const bool data = slot >= meshes && slot < meshes * lanes_end && slot % meshes != 2;
  return data || slot == sentinel_tag;
}

/// Checks one connection, on the thread that reads it.
class FrameCheck {
 public:
  /// Gloo stores each announcement until the other side has posted the operation: one word each, without a
  /// bound. A state of 32 GB has this many chunks.
  static constexpr std::uint64_t announced_most = std::uint64_t{1} << 20U;
  /// Operations that this side has posted on the connection.
  struct Posted {
    std::uint64_t sends = 0;
    std::uint64_t receives = 0;
  };

  /// Returns null if Gloo can process the frame, else the reason for users. Call once per preamble.
  const char* refuse(const Preamble& p, const Posted& posted) {
    if (p.offset != 0 || p.receiver_offset != 0 || !is_tag(p.slot)) return "a message on an unknown lane";
    if (p.opcode == Preamble::message) return nullptr;
    if (p.opcode != Preamble::send_ready && p.opcode != Preamble::receive_ready)
      return "a message of an unknown type";
    if (p.bytes != sizeof(Preamble)) return "an announcement with a payload";
    const bool sends = p.opcode == Preamble::send_ready;
    std::uint64_t& said = announced_[sends ? 0 : 1];
    return ++said > (sends ? posted.receives : posted.sends) + announced_most
               ? "too many announcements without a posted operation"
               : nullptr;
  }
  /// Checks a message that has a posted receive. A shorter message would leave the rest of the buffer unset.
  static const char* refuse_length(const Preamble& p, std::uint64_t awaited) {
    if (p.length > awaited) return "a message longer than expected";
    if (p.length < awaited) return "a message shorter than expected";
    return p.bytes == sizeof(Preamble) + p.length ? nullptr : "a message with two different lengths";
  }

 private:
  std::array<std::uint64_t, 2> announced_{};  ///< sends, receives
};

}  // namespace rivulet::sync::gloo_door
