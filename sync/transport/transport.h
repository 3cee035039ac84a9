#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/result.h"
#include "core/wake.h"
#include "sync/message/view.h"

namespace rivulet::sync {

/// Separate FIFO lanes between two ranks. Receives of facts and of messages that accompany them are posted
/// one round ahead, all others per exchange.
enum class Lane : std::uint16_t {
  facts = 1,
  section = 2,
  payload = 3,
  sum = 4,
  phase = 5,
  shutdown = 6,
  state = 7,
  confirmed = 8,
  speculative = 9,  ///< contributions sent with the facts
  rows = 10,        ///< injected rows, sent with the facts
};
inline constexpr std::size_t lanes_end = static_cast<std::size_t>(Lane::rows) + 1;

/// The purpose of sent bytes. A contribution inside the facts' message counts as facts.
enum class Traffic : std::uint8_t { facts, contributions, state, rows };
inline constexpr std::size_t traffic_kinds = static_cast<std::size_t>(Traffic::rows) + 1;
constexpr std::string_view name_of(Traffic traffic) noexcept {
  constexpr std::array<std::string_view, traffic_kinds> names{"facts", "contributions", "state", "rows"};
  return names[static_cast<std::size_t>(traffic)];
}
constexpr Traffic traffic_of(Lane lane) noexcept {
  switch (lane) {
    case Lane::facts:
    case Lane::section:
    case Lane::shutdown: break;
    case Lane::payload:
    case Lane::sum:
    case Lane::phase:
    case Lane::speculative: return Traffic::contributions;
    case Lane::rows: return Traffic::rows;
    case Lane::state:
    case Lane::confirmed: return Traffic::state;
  }
  return Traffic::facts;
}

class Gathering;

/// Whether the peers' messages are due, so that their silence counts.
enum class Peers : std::uint8_t { due, have_time };

/// Identifies one posted operation. Can be polled any number of times after the operation has finished.
struct Ticket {
  std::uint64_t id = 0;
};

struct TransportCounters {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  std::array<std::uint64_t, traffic_kinds> sent_for{};  ///< of bytes_sent, by Traffic
  void sent(Lane lane, std::uint64_t bytes) noexcept {
    bytes_sent += bytes;
    sent_for[static_cast<std::size_t>(traffic_of(lane))] += bytes;
  }
};

/// Sends bytes between the ranks of one view, point to point, FIFO per (peer, lane). Both sides know every
/// size: a receive must have exactly the length that the peer sends (a longer message ends the peer's process
/// in Gloo, so a checked header with the length is sent first). Large messages are sent in chunks; each chunk
/// is progress. A failure is final: destroy the object, form the next view. Owner: the train thread. Only
/// wait() blocks.
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual std::uint32_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t world() const noexcept = 0;
  /// Returns pending while connecting, done when the mesh is connected. Never waits.
  virtual Progress connected() = 0;
  /// `bytes` must live unchanged until the operation is done. A peer equal to rank() is a bug.
  virtual Ticket send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) = 0;
  virtual Ticket receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) = 0;
  /// A receive that may legitimately stay open for long (next round's facts). It does not count for the
  /// progress deadline before promote().
  virtual Ticket receive_ahead(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) = 0;
  /// A send whose peer may legitimately post the receive much later. Counts for the progress deadline like
  /// receive_ahead().
  virtual Ticket send_ahead(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) = 0;
  virtual void promote(Ticket ticket) = 0;
  /// Returns pending, done, or failed (the whole transport failed; see error()). Never waits.
  virtual Progress poll(Ticket ticket) = 0;
  /// May block for up to about 40 ms, until the operation is done or another event needs attention. So the
  /// owner sees its next message without a wake-up by another thread. True: poll again immediately. False: it
  /// did not block, and `wake` will be notified.
  virtual bool wait(Ticket) { return false; }
  /// False after a failure, also if a peer died while nothing was being exchanged. Never waits.
  [[nodiscard]] virtual bool healthy() = 0;
  /// Errors: peer_lost (names rank, id and how it was noticed) | timed_out (no byte within the progress
  /// deadline; names the rank that was waited for).
  [[nodiscard]] virtual const Error& error() const = 0;
  /// The rank that error() names, or -1.
  [[nodiscard]] virtual int lost_rank() const noexcept = 0;
  [[nodiscard]] virtual TransportCounters counters() const noexcept = 0;
  /// Closes the transport early. Posted buffers are not touched afterwards, so they may be freed before the
  /// transport.
  virtual void close() noexcept {}
  /// For ranks that share memory (gathering.h); null if there are only messages. The same on all ranks of a
  /// view.
  [[nodiscard]] virtual Gathering* gathering() noexcept { return nullptr; }
};

/// The error of a failed transport, which blames the lost rank.
inline Error error_of(const Transport& transport) {
  Error error = transport.error();
  if (const int lost = transport.lost_rank(); lost >= 0) error.blamed = {static_cast<std::uint32_t>(lost)};
  return error;
}

/// Removes finished tickets from the back. Returns done when none is left, and failed if the transport
/// failed.
inline Progress finish_all(Transport& transport, std::vector<Ticket>& tickets) {
  for (; !tickets.empty(); tickets.pop_back())
    if (const Progress p = transport.poll(tickets.back()); p != Progress::done) return p;
  return Progress::done;
}

struct TransportConfig {
  Duration progress_deadline = std::chrono::seconds(5);
  std::size_t chunk_bytes = std::size_t{256} * 1024;
  /// A state must pass links of 100 kbit/s, where one such chunk takes half of the usual deadline.
  std::size_t state_chunk_bytes = std::size_t{32} * 1024;
  [[nodiscard]] std::size_t chunk_of(Lane lane) const noexcept {
    return lane == Lane::state ? std::min(chunk_bytes, state_chunk_bytes) : chunk_bytes;
  }
};

/// Starts to connect and returns immediately. `wake` is notified when an operation has finished.
using Connect = std::function<Result<std::unique_ptr<Transport>>(const ViewSpec&, AddressBook&, Wake&)>;

}  // namespace rivulet::sync
