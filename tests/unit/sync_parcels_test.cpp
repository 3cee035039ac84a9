// Messages of variable length: exactly the sent bytes arrive, and every error names its sender.
#include "sync/round/parcels.h"

#include <doctest/doctest.h>

#include "sync/collective/aggregation.h"
#include "tests/support/memory_ranks.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr ParcelExchange::Way way{Lane::rows, Lane::rows, 77, "things"};

ViewSpec spec_of(std::uint32_t rank) {
  return {.number = 1, .token = 1, .members = std::vector<std::string>{"a", "b", "c"}, .rank = rank};
}

std::vector<std::byte> bytes_of(std::size_t n, int value) {
  return std::vector<std::byte>(n, static_cast<std::byte>(value));
}

struct Fixture : Ranks {
  Fixture() : Ranks(3, {}, {.progress_deadline = 1s}) { connect_all(*this); }
  /// Rank 1 sends this header and bytes; returns the result of rank 0, which expects a maximum of ten bytes.
  std::string refusal(const PayloadHeader& header, int flipped = -1) {
    auto head = encode_header(header);
    if (flipped >= 0) head[static_cast<std::size_t>(flipped)] ^= std::byte{1};
    ParcelExchange mine((*this)[0], specs[0], way);
    const ParcelExchange::Incoming one{1, 10, 2};
    mine.begin(5, {}, std::span(&one, 1), Peers::due);
    (*this)[1].send(0, Lane::rows, head);
    all_to(10ms);
    const Progress p = mine.poll();
    return p == Progress::failed ? mine.error().message : "";
  }
  std::array<ViewSpec, 3> specs{spec_of(0), spec_of(1), spec_of(2)};
};

}  // namespace

TEST_CASE("Parcels: each receiver gets its own, of any length, also of none") {
  Fixture f;
  ParcelExchange a(f[0], f.specs[0], way), b(f[1], f.specs[1], way), c(f[2], f.specs[2], way);
  const std::vector<ParcelExchange::Incoming> from_a{{0, 100, 1}};
  a.begin(3, {{1, bytes_of(70, 7)}, {2, {}}}, {}, Peers::have_time);
  b.begin(3, {}, from_a, Peers::have_time);
  c.begin(3, {}, from_a, Peers::have_time);
  for (Duration t = 1ms; t < 20ms; t += 1ms) {
    f.all_to(t);
    static_cast<void>(b.poll());
  }
  CHECK(a.poll() == Progress::done);
  CHECK(b.poll() == Progress::done);
  CHECK(c.poll() == Progress::done);
  REQUIRE(b.received().size() == 1);
  CHECK(b.received()[0].peer == 0);
  const auto got = b.received()[0].bytes;
  CHECK(std::vector<std::byte>(got.begin(), got.end()) == bytes_of(70, 7));
  CHECK(c.received()[0].bytes.empty());
  CHECK(a.received().empty());
  b.clear();
  CHECK(b.received().empty());
}

TEST_CASE("Parcels: who has time to send is late only once it is due") {
  Fixture f;
  ParcelExchange mine(f[0], f.specs[0], way);
  const ParcelExchange::Incoming one{1, 10, 1};
  mine.begin(5, {}, std::span(&one, 1), Peers::have_time);
  f.all_to(5s);
  CHECK(mine.poll() == Progress::pending);
  mine.peers_are_due();
  f.all_to(6100ms);
  CHECK(mine.poll() == Progress::failed);
  CHECK(mine.error().message.find("device-1") != std::string::npos);
}

TEST_CASE("Parcels: a header that is not a header of this round is refused, with its sender's name") {
  const auto names = [](const std::string& message) {
    return message.find("things from rank 1 (b)") != std::string::npos;
  };
  CHECK(Fixture().refusal({1, 5, 77, 10}).empty());
  CHECK(names(Fixture().refusal({1, 5, 77, 12})));
  CHECK(names(Fixture().refusal({1, 5, 77, 9})));
  CHECK(names(Fixture().refusal({2, 5, 77, 10})));
  CHECK(names(Fixture().refusal({1, 4, 77, 10})));
  CHECK(names(Fixture().refusal({1, 5, 76, 10})));
  CHECK(names(Fixture().refusal({1, 5, 77, 10}, 20)));
}
