#pragma once
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "sync/transport/memory_transport.h"
#include "tests/support/quiet_rank.h"

/// Ranks over the in-memory transport, for tests of transport and synchronization.
namespace rivulet::testing {

/// Ranks of one view on one thread, each with a clock that the test advances.
struct Ranks {
  explicit Ranks(std::uint32_t world, sync::MemoryNetwork::Link link = {}, sync::TransportConfig config = {})
      : network(link, config), clocks(world), wakes(world), transports(world) {
    for (std::uint32_t r = 0; r < world; ++r) connect(r, world, 1);
  }
  void connect(std::uint32_t r, std::uint32_t world, std::uint64_t token) {
    std::vector<std::string> members(world);
    for (std::uint32_t m = 0; m < world; ++m) members[m] = "device-" + std::to_string(m);
    const sync::ViewSpec view{.number = 1, .token = token, .members = std::move(members), .rank = r};
    auto made = network.connect_for(clocks[r])(view, book, wakes[r]);
    REQUIRE(made);
    transports[r] = std::move(made).value();
  }
  void all_to(Duration d) {
    for (auto& clock : clocks) clock.advance_to(at(d));
  }
  sync::Transport& operator[](std::uint32_t r) { return *transports[r]; }

  NoAddresses book;
  sync::MemoryNetwork network;
  std::vector<VirtualClock> clocks;
  std::vector<LastCall> wakes;
  std::vector<std::unique_ptr<sync::Transport>> transports;
};

inline void connect_all(Ranks& ranks) {
  for (auto& t : ranks.transports) REQUIRE(t->connected() == Progress::done);
}

}  // namespace rivulet::testing
