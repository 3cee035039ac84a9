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

/// The network between simulated devices: the in-memory transport with optional delays, blocked links (in one
/// or both directions), reordered messages and broken connections. Messages are lost by rank, which is
/// the device in a view of all. Owner: the simulation's thread.
class SimWires {
 public:
  SimWires(std::size_t devices, Duration deadline);
  /// Connects device `device`; `clock` and `power` are its own.
  sync::Connect connect(std::size_t device, const Clock& clock, SimPower& power);

  /// Called for all that a device sends, except rows that peers inject, which are plain.
  void watch(std::function<void(std::span<const std::byte>)> watcher) { watcher_ = std::move(watcher); }

  void block(std::size_t from, std::size_t to, bool so) { blocked_[from * devices_ + to] = so ? 1 : 0; }
  void isolate(std::size_t device, bool so);
  /// Blocks its payloads, but nothing else: it may finish a round that no peer finishes.
  void mute(std::size_t device, bool so) { muted_[device] = so ? 1 : 0; }
  void slow_down(Duration latency);
  /// Delays about every fourth arriving message by up to `most`: others overtake it, except those of the same
  /// lane and sender. Applies to new connections.
  void delay_messages(Duration most, std::uint64_t seed) {
    delay_most_ = most;
    delays_ = Rng(seed);
  }
  /// Breaks the current connections of this device.
  void cut(std::size_t device) { ++cuts_[device]; }
  /// Its process has ended.
  void kill(const std::string& id) { network_.kill(id); }
  void heal();
  /// Faults of messages and connections.
  [[nodiscard]] const SimFaultCounts& faults() const noexcept { return faults_; }

 private:
  class Wire;
  [[nodiscard]] bool reaches(std::size_t from, std::size_t to) const {
    return blocked_[from * devices_ + to] == 0;
  }
  /// True if this message never arrives.
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
