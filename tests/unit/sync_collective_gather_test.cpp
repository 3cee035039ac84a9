// What gather takes from a peer, and what it refuses because the plan does not allow it.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "sync/collective/aggregation.h"
#include "tests/support/memory_ranks.h"

namespace {

using namespace rivulet;
using sync::Lane;
using testing::connect_all;
using testing::Ranks;

struct Gathering {
  Ranks ranks{2};
  std::vector<float> mine = std::vector<float>(4, 1.0F), agreed = std::vector<float>(4);
  std::vector<double> weights{0.5, 0.5};
  std::unique_ptr<sync::Compressor> compressor;
  const sync::CompressorEntry* compressor_entry = nullptr;
  std::unique_ptr<sync::Aggregation> gather;
  sync::Exchange exchange;

  Gathering() {
    connect_all(ranks);
    for (const auto* e : sync::builtin_compressors())
      compressor_entry = e->name == "dense" ? e : compressor_entry;
    compressor = compressor_entry->make();
    for (const auto* e : sync::builtin_aggregations()) {
      if (e->name == "gather") gather = e->make();
    }
    exchange = {.view = 1,
                .round = 5,
                .weights = weights,
                .mine = {.data = reinterpret_cast<std::byte*>(mine.data()), .count = 4},
                .agreed = {.data = reinterpret_cast<std::byte*>(agreed.data()), .count = 4},
                .compressor = compressor.get(),
                .compressor_entry = compressor_entry,
                .slot_bytes = 16};
  }
  /// Rank 1 sends this header with a payload behind it; what rank 0 makes of it.
  Progress meet(const sync::PayloadHeader& header) {
    REQUIRE(gather->begin(ranks[0], exchange));
    std::array<std::byte, sync::payload_header_bytes + 16> message{};
    std::ranges::copy(sync::encode_header(header), message.begin());
    ranks[1].send(0, Lane::payload, message);
    return gather->poll();
  }
  /// The same of a compressor whose payloads differ in length: two messages.
  Progress meet_in_two(const sync::PayloadHeader& header, std::span<const std::byte> payload) {
    REQUIRE(gather->begin(ranks[0], exchange));
    const auto bytes = sync::encode_header(header);
    ranks[1].send(0, Lane::header, bytes);
    ranks[1].send(0, Lane::payload, payload);
    return gather->poll();
  }
};

/// dense, but it does not say so.
class OfAnyLength final : public sync::Compressor {
 public:
  explicit OfAnyLength(sync::Compressor& dense) : dense_(dense) {}
  [[nodiscard]] bool accepts(MemoryKind kind) const noexcept override { return dense_.accepts(kind); }
  [[nodiscard]] std::size_t bytes_max(std::size_t count, Scalar scalar) const noexcept override {
    return dense_.bytes_max(count, scalar);
  }
  Result<std::size_t> encode(const GradientView& in, double weight, double keep_ratio,
                             std::span<std::byte> out) override {
    return dense_.encode(in, weight, keep_ratio, out);
  }
  Status decode_add(std::span<const std::byte> bytes, const GradientView& sum) override {
    return dense_.decode_add(bytes, sum);
  }
  void commit() noexcept override {}
  void drop() noexcept override {}

 private:
  sync::Compressor& dense_;
};

TEST_CASE("Gather: takes a header that fits the plan") {
  Gathering g;
  CHECK(g.meet({.view = 1, .round = 5, .compressor = 1, .length = 16}) == Progress::done);
  CHECK(g.agreed == std::vector<float>(4, 0.5F));
}

TEST_CASE(
    "Gather: a header of another view, round, compressor or above the bound is refused before its payload is "
    "taken") {
  const sync::PayloadHeader right{.view = 1, .round = 5, .compressor = 1, .length = 16};
  for (const char* field : {"view", "round", "compressor", "length"}) {
    Gathering g;
    sync::PayloadHeader wrong = right;
    const std::string name = field;
    if (name == "view") wrong.view = 2;
    if (name == "round") wrong.round = 4;
    if (name == "compressor") wrong.compressor = 9;
    if (name == "length") wrong.length = 17;
    CHECK(g.meet(wrong) == Progress::failed);
    CHECK(g.gather->error().code == ErrorCode::protocol);
    CHECK(g.gather->error().message.find(name) != std::string::npos);
    CHECK(g.gather->error().message.find("rank 1") != std::string::npos);
  }
}

TEST_CASE(
    "Gather: payloads of any length have their header in front, which is checked before they are taken") {
  const std::array<std::byte, 17> payload{};
  for (const std::uint64_t length : {16, 8, 17}) {
    Gathering g;
    OfAnyLength compressor(*g.compressor);
    g.exchange.compressor = &compressor;
    const Progress p = g.meet_in_two({.view = 1, .round = 5, .compressor = 1, .length = length},
                                     std::span(payload).first(static_cast<std::size_t>(length)));
    CHECK((p == Progress::done) == (length == 16));
    if (length == 16) continue;
    // 8: the compressor refuses what is too short for the model; 17: more than the plan allows, never
    // received
    CHECK(g.gather->error().message.find("rank 1") != std::string::npos);
    CHECK((g.gather->error().message.find("length is 17") != std::string::npos) == (length == 17));
  }
}

TEST_CASE("Gather: the plan's bound also holds for who sends nothing itself") {
  Gathering g;
  g.weights = {0, 1};
  g.exchange.slot_bytes = 15;
  CHECK(g.meet({.view = 1, .round = 5, .compressor = 1, .length = 16}) == Progress::failed);
  CHECK(g.gather->error().message.find("length is 16, expected 15") != std::string::npos);
}

TEST_CASE("Gather: an own payload above the plan's bound is an error of begin") {
  Gathering g;
  g.exchange.slot_bytes = 15;
  const auto begun = g.gather->begin(g.ranks[0], g.exchange);
  REQUIRE_FALSE(begun);
  CHECK(begun.error().code == ErrorCode::protocol);
}

}  // namespace
