// Transfer of a view's state: after a change of one bit in transit, the receiver rejects all of it.
#include "sync/collective/state_exchange.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "core/rng.h"
#include "tests/support/memory_ranks.h"
#include "tests/support/wrapped_transport.h"

using namespace rivulet;
using namespace rivulet::testing;
using sync::Lane;

namespace {

/// The donor's transport: flips one bit of the `message`-th message in the state's lane.
struct SpoilingWires final : WrappedTransport {
  using WrappedTransport::WrappedTransport;
  sync::Ticket send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) override {
    if (lane != Lane::state || sent++ != message || !bit) return inner->send(peer, lane, bytes);
    spoiled.assign(bytes.begin(), bytes.end());
    spoiled[*bit / 8 % spoiled.size()] ^= std::byte{static_cast<unsigned char>(1U << (*bit % 8))};
    return inner->send(peer, lane, spoiled);
  }
  int message = 0;  ///< 0: header, 1: checksums, 2: the state
  std::optional<std::size_t> bit;
  int sent = 0;
  std::vector<std::byte> spoiled;
};

sync::ViewSpec view_for(std::uint32_t rank) {
  sync::ViewSpec view{.number = 1, .token = 1, .members = std::vector<std::string>{"a", "b"}, .rank = rank};
  view.holders = std::vector<std::uint32_t>{0};
  return view;
}

std::vector<std::byte> drawn(std::size_t size) {
  std::vector<std::byte> bytes(size);
  Rng rng(3);
  for (auto& b : bytes) b = std::byte{static_cast<unsigned char>(rng.below(256))};
  return bytes;
}

/// Result on rank 1 for a state from rank 0 over such a transport: "taken", or its error.
std::string sent_over(const std::vector<std::byte>& state, int message, std::optional<std::size_t> bit) {
  Ranks ranks(2);
  connect_all(ranks);
  SpoilingWires wires(std::move(ranks.transports[0]));
  wires.message = message;
  wires.bit = bit;
  const TimePoint end = at(std::chrono::seconds(10));
  sync::StateExchange donor(wires, view_for(0), state.size(), end);
  sync::StateExchange taker(ranks[1], view_for(1), state.size(), end);
  donor.give(state);
  donor.confirm();
  taker.take();
  Progress p = Progress::pending;
  for (int ms = 0; ms < 100 && p == Progress::pending; ++ms) {
    for (auto& clock : ranks.clocks) clock.advance_to(at(std::chrono::milliseconds(ms)));
    static_cast<void>(donor.poll(ranks.clocks[0].now()));
    p = taker.poll(ranks.clocks[1].now());
  }
  if (p == Progress::pending) return "nothing came";
  if (p == Progress::failed) return std::string(name_of(taker.error().code)) + ": " + taker.error().message;
  const auto taken = taker.taken();
  return std::equal(taken.begin(), taken.end(), state.begin(), state.end()) ? "taken" : "other bytes taken";
}

}  // namespace

TEST_CASE("State on its way: any one bit that changes is found, and the donor is named") {
  const std::string damaged = "protocol: the state from rank 0 (a) was damaged in transit";
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, (std::size_t{1} << 20U) + 5}) {
    CAPTURE(size);
    const auto state = drawn(size);
    CHECK(sent_over(state, 2, std::nullopt) == "taken");
    for (const std::size_t bit : {std::size_t{0}, 4 * size, 8 * size - 1}) {
      CAPTURE(bit);
      CHECK(sent_over(state, 2, bit) == damaged);
    }
    CHECK(sent_over(state, 1, 7) == damaged);  // a checksum
    for (const std::size_t bit : {0UL, 64UL, 130UL, 200UL})
      CHECK(sent_over(state, 0, bit) == "protocol: the state from rank 0 (a) has an invalid header");
  }
}
