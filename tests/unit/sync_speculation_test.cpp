#include <doctest/doctest.h>

#include "sync/collective/slot_gather.h"
#include "sync/round/contribution_exchange.h"
#include "sync/round/speculation.h"
#include "sync/transport/memory_transport.h"
#include "tests/conformance/transport_harness.h"
#include "tests/support/dense_exchange.h"

using namespace rivulet;
using namespace rivulet::sync;
using policy::Mode;

namespace {

/// A round of two devices: rows and plan.
Round round_of(std::uint32_t a, std::uint32_t b, Mode mode = Mode::gradients) {
  FactsTable table;
  table.facts.resize(2);
  table.sections.resize(2);
  table.facts[0].rows = a;
  table.facts[1].rows = b;
  policy::PolicyState state;
  state.last.now.mode = mode;
  const double all = a + b;
  state.last.now.weights = {all > 0 ? a / all : 0, all > 0 ? b / all : 0};
  return {std::move(table), std::move(state), nullptr};
}

const policy::Schedule dense{.way = {.payload_bytes = 16}};

bool see(Speculation& speculation, const Round& round, const policy::Schedule& schedule = dense) {
  return speculation.see(round, schedule, false);
}

Speculation after(std::uint32_t rounds, const policy::Schedule& schedule = dense) {
  Speculation speculation(true);
  for (std::uint32_t i = 0; i < rounds; ++i) CHECK(see(speculation, round_of(64, 64), schedule));
  return speculation;
}

TEST_CASE("Speculation: after enough rounds that came as expected, in whatever shares") {
  CHECK_FALSE(after(Speculation::rounds_before - 1).speculates(dense));
  CHECK(after(Speculation::rounds_before).speculates(dense));
  Speculation uneven(true);
  for (std::uint32_t i = 0; i < Speculation::rounds_before; ++i) CHECK(see(uneven, round_of(i, 7)));
  CHECK(uneven.speculates(dense));
}

TEST_CASE("Speculation: never where it is not possible") {
  Speculation speculation(false);
  for (int i = 0; i < 100; ++i) see(speculation, round_of(64, 64));
  CHECK_FALSE(speculation.speculates(dense));
}

TEST_CASE("Speculation: never with a long payload") {
  for (const std::uint64_t over : {0U, 1U}) {
    const policy::Schedule schedule{.way = {.payload_bytes = Speculation::payload_bytes_max + over}};
    CHECK(after(100, schedule).speculates(schedule) == (over == 0));
  }
}

TEST_CASE("Speculation: a round of another kind makes it careful again") {
  const auto careful_after = [](const Round& other) {
    Speculation speculation = after(20);
    CHECK_FALSE(see(speculation, other));
    CHECK_FALSE(speculation.speculates(dense));
    for (std::uint32_t i = 0; i < Speculation::rounds_before; ++i) see(speculation, round_of(64, 64));
    CHECK(speculation.speculates(dense));
  };
  for (const Mode mode : {Mode::delta, Mode::defer, Mode::skip}) careful_after(round_of(64, 64, mode));
  // Weight without rows: unexpected local steps.
  Round steps = round_of(64, 0);
  policy::PolicyState state = steps.state;
  state.last.now.weights = {0.5, 0.5};
  careful_after({steps.table, state, nullptr});
}

TEST_CASE("Speculation: never where the schedule is of another exchange") {
  const Speculation speculation = after(20);
  CHECK(speculation.speculates(dense));
  policy::Schedule other = dense;
  other.way.compressor = "nonzero";
  CHECK_FALSE(speculation.speculates(other));
  other = dense;
  other.way.payload_bytes = 15;
  CHECK_FALSE(speculation.speculates(other));
}

TEST_CASE("Speculation: a round that flushes is not foreseen, and another compressor is tried out first") {
  Speculation speculation = after(20);
  CHECK_FALSE(speculation.see(round_of(64, 64), dense, true));
  CHECK_FALSE(speculation.speculates(dense));
  policy::Schedule sparse = dense;
  sparse.way.compressor = "sparse";
  speculation = after(20);
  for (std::uint32_t i = 0; i < Speculation::rounds_before; ++i) {
    CHECK_FALSE(speculation.speculates(sparse));
    CHECK(see(speculation, round_of(64, 64), sparse));
  }
  CHECK(speculation.speculates(sparse));
  CHECK_FALSE(speculation.speculates(dense));
}

TEST_CASE("Speculation: a round without rows changes nothing") {
  Speculation speculation = after(Speculation::rounds_before);
  CHECK_FALSE(see(speculation, round_of(0, 0, Mode::idle)));
  CHECK(speculation.speculates(dense));
}

// ---- contributions sent ahead ----

/// Rank 0 of two over the in-memory transport; the test plays rank 1.
struct EarlyRound {
  MemoryNetwork network;
  VirtualClock clock;
  testing::SleepWake wakes[2];
  testing::FolderBook book{"unused"};
  std::vector<std::unique_ptr<Transport>> ranks;
  std::unique_ptr<SpeculativeAggregation> early = make_slot_gather(true);
  std::vector<float> mine{1, 2, 3, 4}, agreed = std::vector<float>(4, 77);
  std::vector<double> weights{0.25, 0.75};
  testing::DenseExchange<float> exchange{mine, agreed, weights};

  EarlyRound() {
    const auto connect = network.connect_for(clock);
    for (std::uint32_t r = 0; r < 2; ++r)
      ranks.push_back(connect(testing::view_of(2, r), book, wakes[r]).value());
    for (const auto& rank : ranks) REQUIRE(rank->connected() == Progress::done);
    exchange.round = 5;
  }
  void peer_sends(const PayloadHeader& header, const std::vector<float>& numbers) {
    std::vector<std::byte> message(payload_header_bytes + 4 * numbers.size());
    std::ranges::copy(encode_header(header), message.begin());
    std::memcpy(message.data() + payload_header_bytes, numbers.data(), 4 * numbers.size());
    ranks[1]->send(0, Lane::speculative, message);
  }
};

TEST_CASE("Early gather: weights that were not known when it was sent") {
  EarlyRound r;
  REQUIRE(r.early->send(*r.ranks[0], r.exchange, true));
  r.peer_sends({.view = 7, .round = 5, .compressor = 1, .length = 16}, {4, 4, 8, 8});
  r.weights = {0.5, 0.5};
  REQUIRE(r.early->begin(*r.ranks[0], r.exchange));
  CHECK(r.early->poll() == Progress::done);
  CHECK(r.agreed == std::vector<float>{2.5, 3, 5.5, 6});
}

TEST_CASE("Early gather: whose rows are none sends nothing and is not waited for") {
  EarlyRound r;
  SUBCASE("a peer") {
    r.weights = {1, 0};
    REQUIRE(r.early->send(*r.ranks[0], r.exchange, true));
    REQUIRE(r.early->begin(*r.ranks[0], r.exchange));
    CHECK(r.early->poll() == Progress::done);
    CHECK(r.agreed == r.mine);
    CHECK(r.ranks[0]->counters().bytes_sent == payload_header_bytes + 16);
    r.clock.advance_to(r.clock.now() + std::chrono::seconds(
                                           60));  // its receive stays posted, which does not count as a stall
    CHECK(r.ranks[0]->healthy());
  }
  SUBCASE("this device") {
    r.weights = {0, 1};
    REQUIRE(r.early->send(*r.ranks[0], r.exchange, false));
    REQUIRE(r.early->begin(*r.ranks[0], r.exchange));
    CHECK(r.early->poll() == Progress::pending);
    r.peer_sends({.view = 7, .round = 5, .compressor = 1, .length = 16}, {4, 4, 8, 8});
    CHECK(r.early->poll() == Progress::done);
    CHECK(r.agreed == std::vector<float>{4, 4, 8, 8});
    CHECK(r.ranks[0]->counters().bytes_sent == 0);
  }
}

TEST_CASE("Early gather: what is given up is received, adds nothing, and is not taken for the next round's") {
  EarlyRound r;
  REQUIRE(r.early->send(*r.ranks[0], r.exchange, true));
  r.early->give_up(std::vector<std::uint32_t>{3, 3});
  CHECK(r.early->poll() == Progress::pending);  // it is in flight
  r.peer_sends({.view = 7, .round = 5, .compressor = 1, .length = 16}, {9, 9, 9, 9});
  CHECK(r.early->poll() == Progress::done);
  CHECK(r.agreed == std::vector<float>(4, 77));
  r.exchange.round = 6;
  REQUIRE(r.early->send(*r.ranks[0], r.exchange, true));
  r.peer_sends({.view = 7, .round = 6, .compressor = 1, .length = 16}, {4, 4, 8, 8});
  REQUIRE(r.early->begin(*r.ranks[0], r.exchange));
  CHECK(r.early->poll() == Progress::done);
  CHECK(r.agreed == std::vector<float>{3.25, 3.5, 6.75, 7});
}

TEST_CASE(
    "Early gather: a header that does not fit is an error that names rank and field, also in what is given "
    "up") {
  for (const bool given_up : {false, true})
    for (const std::string field : {"view", "round", "compressor", "length", "magic"}) {
      EarlyRound r;
      PayloadHeader wrong{.view = 7, .round = 5, .compressor = 1, .length = 16};
      if (field == "view") wrong.view = 8;
      if (field == "round") wrong.round = 4;
      if (field == "compressor") wrong.compressor = 9;
      if (field == "length") wrong.length = 15;
      REQUIRE(r.early->send(*r.ranks[0], r.exchange, true));
      if (field == "magic")
        r.ranks[1]->send(0, Lane::speculative, std::vector<std::byte>(payload_header_bytes + 16));
      else
        r.peer_sends(wrong, {0, 0, 0, 0});
      if (given_up)
        r.early->give_up(std::vector<std::uint32_t>{3, 3});
      else
        REQUIRE(r.early->begin(*r.ranks[0], r.exchange));
      CHECK(r.early->poll() == Progress::failed);
      CHECK(r.early->error().code == ErrorCode::protocol);
      CHECK(r.early->error().message.find("rank 1") != std::string::npos);
      if (field != "magic") CHECK(r.early->error().message.find(field) != std::string::npos);
    }
}

}  // namespace

TEST_CASE("Speculation: a weight is guessed from what was asked of the others") {
  policy::Schedule together;
  together.rows = {20, 30, 50};
  CHECK(guess_weight(together, 0, 20) == doctest::Approx(0.2));
  CHECK(guess_weight(together, 0, 5) == doctest::Approx(5.0 / 85));
  CHECK(guess_weight(together, 0, 0) == 0);
}

TEST_CASE("Speculation: apart, the others are thought to have made as many steps") {
  policy::Schedule apart;
  apart.local = policy::LocalSchedule{.steps = 10};
  apart.rows = {20, 30, 0};
  CHECK(guess_weight(apart, 0, 80) == doctest::Approx(80.0 / (80 + 4 * 30)));
  // Weight of a stream too slow for requested rows: predicted from the rows requested from the others.
  CHECK(guess_weight(apart, 2, 5) == doctest::Approx(5.0 / (5 + 10 * 50)));
}
