#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/rng.h"
#include "sync/transport/memory_transport.h"
#include "tests/support/sim_faults.h"
#include "tests/support/sim_power.h"

namespace rivulet::testing {

/// The network between simulated devices: the in-memory wires, slow when told so, with links that carry
/// nothing (in one or both directions), messages that others overtake, and connections that break. Devices
/// are ranks: every view has all of them. Owner: the thread of the simulation.
class SimWires {
 public:
  SimWires(std::size_t devices, Duration deadline);
  /// How device `device` connects; `clock` and `power` are its own.
  sync::Connect connect(std::size_t device, const Clock& clock, SimPower& power);

  /// Sees everything that a device sends but rows that it lends to others: these are in clear.
  void watch(std::function<void(std::span<const std::byte>)> watcher) { watcher_ = std::move(watcher); }

  void block(std::size_t from, std::size_t to, bool so) { blocked_[from * devices_ + to] = so ? 1 : 0; }
  void isolate(std::size_t device, bool so);
  /// Nobody gets its payloads, but everything else: it may finish a round that nobody else finishes.
  void mute(std::size_t device, bool so) { muted_[device] = so ? 1 : 0; }
  void slow_down(Duration latency);
  /// Of the messages that arrive, about every fourth is kept from its receiver a while longer, up to `most`:
  /// others overtake it, but those of the same lane and sender. Connections that are made from now on.
  void delay_messages(Duration most, std::uint64_t seed) {
    delay_most_ = most;
    delays_ = Rng(seed);
  }
  /// The connections that this device has now break.
  void cut(std::size_t device) { ++cuts_[device]; }
  /// Its process is gone.
  void kill(const std::string& id) { network_.kill(id); }
  void heal();
  /// Messages and connections that something has happened to.
  [[nodiscard]] const SimFaultCounts& faults() const noexcept { return faults_; }

 private:
  class Wire;
  [[nodiscard]] bool reaches(std::size_t from, std::size_t to) const {
    return blocked_[from * devices_ + to] == 0;
  }
  /// Does this message never arrive?
  bool loses(std::size_t from, std::size_t to, sync::Lane lane);
  Duration draw_delay();

  const std::size_t devices_;
  const Duration deadline_;
  sync::MemoryNetwork network_;
  std::vector<std::uint8_t> blocked_;  ///< [from][to]
  std::vector<std::uint8_t> muted_;    ///< by device
  std::vector<std::uint64_t> cuts_;    ///< by device, so far
  bool slow_ = false;
  Duration delay_most_{};
  Rng delays_{0};
  SimFaultCounts faults_;
  std::function<void(std::span<const std::byte>)> watcher_ = [](std::span<const std::byte>) {};
};

}  // namespace rivulet::testing
