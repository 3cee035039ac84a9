// Exchange between ranks that share memory, in virtual time, without a group.
#include <doctest/doctest.h>

#include "core/clock.h"
#include "sync/transport/gathering.h"
#include "sync/transport/memory_transport.h"
#include "tests/support/quiet_rank.h"

namespace {

using namespace rivulet;
using namespace std::chrono_literals;
using sync::Gathering;
using sync::Lane;
using sync::Ticket;
using testing::at;
using testing::LastCall;
using testing::NoAddresses;

/// Three ranks over one link of 1000 bytes/s and 10 ms.
struct Three {
  Three() {
    network.gather(2);
    for (std::uint32_t r = 0; r < 3; ++r) {
      auto made = network.connect_for(clocks[r])(
          {.number = 1, .token = 1, .members = {"a", "b", "c"}, .rank = r}, book, wakes[r]);
      REQUIRE(made);
      transports[r] = std::move(made).value();
    }
    for (auto& t : transports) REQUIRE(t->connected() == Progress::done);
  }
  void all_to(Duration d) {
    for (auto& clock : clocks) clock.advance_to(at(d));
  }
  Gathering& operator[](std::uint32_t r) { return *transports[r]->gathering(); }
  Ticket tell(std::uint32_t r, std::size_t bytes, std::uint32_t contributors = 3) {
    return (*this)[r].contribute({.lane = Lane::payload,
                                  .header_bytes = 50,
                                  .bytes = std::vector<std::byte>(bytes, std::byte(r)),
                                  .contributors = contributors,
                                  .receives_only = bytes == 0});
  }

  NoAddresses book;
  sync::MemoryNetwork network{{.latency = 10ms, .bytes_per_second = 1000}, {.progress_deadline = 5s}};
  VirtualClock clocks[3];
  LastCall wakes[3];
  std::unique_ptr<sync::Transport> transports[3];
};

TEST_CASE("Gathering: done when the last byte of the others is here and the own have left") {
  Three ranks;
  const Ticket a = ranks.tell(0, 100);
  ranks.clocks[1].advance_to(at(40ms));
  const Ticket b = ranks.tell(1, 100);
  ranks.clocks[2].advance_to(at(20ms));
  const Ticket c = ranks.tell(2, 300);
  // a leaves at 150 and arrives at 160; b at 190, 200; c at 370, 380.
  CHECK(ranks.wakes[0].next == at(380ms));
  CHECK(ranks.wakes[2].next == at(370ms));
  ranks.all_to(370ms - 1ns);
  CHECK(ranks.transports[2]->poll(c) == Progress::pending);
  ranks.all_to(370ms);
  CHECK(ranks.transports[2]->poll(c) == Progress::done);
  CHECK(ranks.transports[0]->poll(a) == Progress::pending);
  ranks.all_to(380ms);
  CHECK(ranks.transports[0]->poll(a) == Progress::done);
  CHECK(ranks.transports[1]->poll(b) == Progress::done);
  const auto told = ranks[0].take(a);
  CHECK(told == ranks[1].take(b));
  CHECK(told->of[2] == std::vector<std::byte>(300, std::byte{2}));
  CHECK(ranks.transports[0]->counters().bytes_sent == 2 * 150);
  CHECK(ranks.transports[0]->counters().bytes_received == 150 + 350);
}

TEST_CASE("Gathering: who listens tells nothing and waits for those who do") {
  Three ranks;
  const Ticket b = ranks.tell(1, 0, 2);
  const Ticket a = ranks.tell(0, 100, 2);
  const Ticket c = ranks.tell(2, 100, 2);
  ranks.all_to(160ms - 1ns);
  CHECK(ranks.transports[1]->poll(b) == Progress::pending);
  ranks.all_to(160ms);
  for (const auto& [rank, ticket] : {std::pair(0, a), {1, b}, {2, c}})
    CHECK(ranks.transports[rank]->poll(ticket) == Progress::done);
  CHECK(ranks[1].take(b)->of[1].empty());
}

TEST_CASE("Gathering: who has not entered is told when the first bytes come") {
  Three ranks;
  CHECK_FALSE(ranks[1].anything_contributed(Lane::payload));
  ranks.tell(0, 100);
  CHECK(ranks.wakes[1].next == at(160ms));
  ranks.clocks[1].advance_to(at(160ms - 1ns));
  CHECK_FALSE(ranks[1].anything_contributed(Lane::payload));
  ranks.clocks[1].advance_to(at(160ms));
  CHECK(ranks[1].anything_contributed(Lane::payload));
}

TEST_CASE("Gathering: who is silent for the deadline is named, and the alarm rings once for it") {
  Three ranks;
  const Ticket c = ranks.tell(2, 100);
  ranks.tell(0, 100);
  ranks.clocks[2].advance_to(at(160ms + 5s - 1ns));
  CHECK(ranks.transports[2]->poll(c) == Progress::pending);
  CHECK(ranks.wakes[2].next == at(160ms + 5s));
  ranks.clocks[2].advance_to(at(160ms + 5s));
  CHECK(ranks.transports[2]->poll(c) == Progress::failed);
  CHECK(ranks.transports[2]->error().code == ErrorCode::timed_out);
  CHECK(ranks.transports[2]->lost_rank() == 1);
}

TEST_CASE("Gathering: what a dead peer had told still arrives, then it is lost") {
  Three ranks;
  const Ticket a = ranks.tell(0, 100);
  ranks.tell(1, 100);
  ranks.network.kill("b");
  ranks.clocks[0].advance_to(at(160ms - 1ns));
  CHECK(ranks.transports[0]->poll(a) == Progress::pending);
  ranks.clocks[0].advance_to(at(160ms));
  CHECK(ranks.transports[0]->poll(a) == Progress::failed);
  CHECK(ranks.transports[0]->error().code == ErrorCode::peer_lost);
  CHECK(ranks.transports[0]->lost_rank() == 1);
}

TEST_CASE("Gathering: who has said goodbye may go") {
  Three ranks;
  Ticket tickets[3];
  for (std::uint32_t r = 0; r < 3; ++r)
    tickets[r] =
        ranks[r].contribute({.lane = Lane::shutdown, .bytes = std::vector<std::byte>(8), .contributors = 3});
  ranks.clocks[1].advance_to(at(18ms));
  CHECK(ranks.transports[1]->poll(tickets[1]) == Progress::done);
  ranks.transports[1]->close();
  ranks.clocks[0].advance_to(at(1s));
  CHECK(ranks.transports[0]->poll(tickets[0]) == Progress::done);
  CHECK(ranks.transports[0]->healthy());
}

TEST_CASE("Gathering: a view has it from its beginning or not at all") {
  Three ranks;
  CHECK(ranks.transports[0]->gathering() != nullptr);
  sync::MemoryNetwork messages;
  VirtualClock clock;
  LastCall wake;
  auto alone = messages.connect_for(clock)({.number = 1, .token = 1, .members = {"a"}}, ranks.book, wake);
  REQUIRE(alone);
  CHECK(alone.value()->gathering() == nullptr);
}

TEST_CASE("Shared work: made once for each input and type, and kept with what it is made of") {
  SharedWork work;
  const auto input = std::make_shared<const int>(1);
  const auto other = std::make_shared<const int>(1);
  int made = 0;
  const auto make = [&] { return std::make_shared<const int>(++made); };
  CHECK(*work.once<int>(input, make) == 1);
  CHECK(*work.once<int>(input, make) == 1);
  CHECK(*work.once<int>(other, make) == 2);
  CHECK(*work.once<long>(input, [] { return std::make_shared<const long>(7); }) == 7);
  CHECK(input.use_count() == 3);  // both values share it
}

}  // namespace
