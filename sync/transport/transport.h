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

/// Separate FIFO lanes between two ranks. Receives of facts, and of what comes with them, are
/// posted one round ahead; the rest is per exchange.
enum class Lane : std::uint16_t {
  facts = 1,
  section = 2,
  payload = 3,
  sum = 4,
  phase = 5,
  shutdown = 6,
  state = 7,
  settled = 8,
  speculative = 9,  ///< contributions that leave with the facts
  copies = 10,      ///< of rows, with the facts
};
inline constexpr std::size_t lanes_end = static_cast<std::size_t>(Lane::copies) + 1;

/// What bytes are sent for. A contribution that leaves in the message of the facts counts with them.
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
    case Lane::copies: return Traffic::rows;
    case Lane::state:
    case Lane::settled: return Traffic::state;
  }
  return Traffic::facts;
}

class Gathering;

/// Whether a device that waits for its peers' messages may expect them by now.
enum class Peers : std::uint8_t { due, have_time };

/// Names one posted operation. Tickets of a finished operation may be polled for ever.
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

/// Bytes between the ranks of one view, point to point. Both sides know every size: a receive must be posted
/// with exactly the length the peer sends (longer ends the peer's process in Gloo, so lengths travel in
/// checked headers first). FIFO per (peer, lane). Large messages go in chunks; any chunk is progress.
/// A failure is final for the object: destroy it, form the next view. Owner: the train thread. Nothing waits
/// but wait().
class Transport {
 public:
  virtual ~Transport() = default;
  [[nodiscard]] virtual std::uint32_t rank() const noexcept = 0;
  [[nodiscard]] virtual std::uint32_t world() const noexcept = 0;
  /// pending while connecting; done when the mesh stands. Never waits.
  virtual Progress connected() = 0;
  /// `bytes` must live unchanged until done. A peer equal to rank() is a bug.
  virtual Ticket send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) = 0;
  virtual Ticket receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) = 0;
  /// A receive that may stay open for long without anything being wrong (next round's facts). It does not
  /// count for the progress deadline until promote()d.
  virtual Ticket receive_ahead(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) = 0;
  /// A send whose peer may post the receive much later without anything being wrong: as receive_ahead().
  virtual Ticket send_ahead(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) = 0;
  virtual void promote(Ticket ticket) = 0;
  /// pending | done | failed (the whole transport failed; see error()). Never waits.
  virtual Progress poll(Ticket ticket) = 0;
  /// May block until the operation is done or something else is worth a look, at most about 40 ms: what the
  /// owner waits for next is seen without a wake-up by another thread. True: look again at once; false: it
  /// did not wait, `wake` will be notified.
  virtual bool wait(Ticket) { return false; }
  /// Also failed when a peer died while nothing was being exchanged. Never waits.
  [[nodiscard]] virtual bool healthy() = 0;
  /// peer_lost (names the rank and id, how it was noticed) | timed_out (no byte within the progress deadline,
  /// whom it waited for).
  [[nodiscard]] virtual const Error& error() const = 0;
  /// Rank that error() is about, or -1.
  [[nodiscard]] virtual int lost_rank() const noexcept = 0;
  [[nodiscard]] virtual TransportCounters counters() const noexcept = 0;
  /// Ends it early: nothing that was posted is touched after this, so buffers may be freed before the
  /// transport is.
  virtual void close() noexcept {}
  /// For ranks that share memory (gathering.h); null: there are only messages. All ranks of a view return the
  /// same.
  [[nodiscard]] virtual Gathering* gathering() noexcept { return nullptr; }
};

/// Forgets the tickets that are done, from the back: done when none is left, failed as the transport.
inline Progress finish_all(Transport& transport, std::vector<Ticket>& tickets) {
  for (; !tickets.empty(); tickets.pop_back())
    if (const Progress p = transport.poll(tickets.back()); p != Progress::done) return p;
  return Progress::done;
}

struct TransportConfig {
  Duration progress_deadline = std::chrono::seconds(5);
  std::size_t chunk_bytes = std::size_t{256} * 1024;
  /// A state must get over links of 100 kbit/s, where this takes half of the usual deadline.
  std::size_t state_chunk_bytes = std::size_t{32} * 1024;
  [[nodiscard]] std::size_t chunk_of(Lane lane) const noexcept {
    return lane == Lane::state ? std::min(chunk_bytes, state_chunk_bytes) : chunk_bytes;
  }
};

/// Starts connecting and returns at once. `wake` is notified when anything finished.
using Connect = std::function<Result<std::unique_ptr<Transport>>(const ViewSpec&, AddressBook&, Wake&)>;

}  // namespace rivulet::sync
