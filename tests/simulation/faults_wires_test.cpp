// Faults of messages in the simulated network are those of a real one.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/support/quiet_rank.h"
#include "tests/support/sim_wires.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

constexpr std::size_t messages = 100;
constexpr Duration deadline = std::chrono::seconds(1);

class NoWake final : public Wake {
 public:
  void notify() noexcept override {}
};

/// Three devices; the first receives a series of messages on two lanes from each of the others.
struct Lanes {
  SimWires wires{3, deadline};
  VirtualClock clock;
  SimPower power;
  NoAddresses book;
  NoWake wake;
  std::vector<std::unique_ptr<sync::Transport>> ends;
  struct Lane {
    std::uint32_t peer = 0;
    sync::Lane lane = sync::Lane::facts;
    std::array<std::byte, messages> bytes{};
    std::vector<sync::Ticket> tickets{};
    std::size_t here = 0;
  };
  std::vector<Lane> lanes{
      {1, sync::Lane::facts}, {1, sync::Lane::payload}, {2, sync::Lane::facts}, {2, sync::Lane::payload}};
  bool overtaken = false;
  bool in_order = true;

  explicit Lanes(Duration jitter, std::uint64_t seed) {
    wires.delay_messages(jitter, seed);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      sync::ViewSpec view{.number = 1, .token = 1, .members = {"a", "b", "c"}, .rank = rank};
      ends.push_back(wires.connect(rank, clock, power)(view, book, wake).value());
    }
    for (const auto& end : ends) REQUIRE(end->connected() == Progress::done);
    for (Lane& lane : lanes)
      for (std::size_t i = 0; i < messages; ++i)
        lane.tickets.push_back(ends[0]->receive(lane.peer, lane.lane, std::span(lane.bytes).subspan(i, 1)));
  }
  void send(std::size_t index) {
    const std::byte byte{static_cast<unsigned char>(index)};
    for (const Lane& lane : lanes) ends[lane.peer]->send(0, lane.lane, std::span(&byte, 1));
  }
  /// Polls the last receive first, as code that waits for all of them does.
  void look() {
    for (Lane& lane : lanes) {
      std::vector<bool> done(messages);
      for (std::size_t i = messages; i-- > 0;) done[i] = ends[0]->poll(lane.tickets[i]) == Progress::done;
      lane.here = static_cast<std::size_t>(std::ranges::count(done, true));
      in_order = in_order && std::ranges::is_partitioned(done, [](bool is) { return is; });
    }
    overtaken =
        overtaken || std::ranges::any_of(lanes, [&](const Lane& l) { return l.here != lanes[0].here; });
  }
  void run() {
    for (std::size_t i = 0; i < messages; ++i) {
      send(i);
      clock.advance_by(std::chrono::milliseconds(1));
      look();
    }
    clock.advance_by(deadline / 2);
    look();
  }
};

}  // namespace

TEST_CASE("Wires: single messages are late, others overtake them, but none of their lane and sender") {
  Lanes delayed(std::chrono::milliseconds(20), 1);
  delayed.run();
  CHECK(delayed.overtaken);
  CHECK(delayed.in_order);
  CHECK(delayed.wires.faults().of(SimFault::message_delayed) > 0);
  CHECK(delayed.wires.faults().of(SimFault::message_overtaken) > 0);
  for (const auto& lane : delayed.lanes) {
    CHECK(lane.here == messages);
    for (std::size_t i = 0; i < messages; ++i) CHECK(std::to_integer<std::size_t>(lane.bytes[i]) == i);
  }
}

TEST_CASE("Wires: what is not told to delay messages delays none") {
  Lanes usual(Duration::zero(), 1);
  usual.run();
  CHECK_FALSE(usual.overtaken);
  CHECK(usual.wires.faults().of(SimFault::message_delayed) == 0);
}
