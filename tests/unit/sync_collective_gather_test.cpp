// What gather accepts from a peer, and what it rejects because it violates the plan.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "sync/collective/aggregation.h"
#include "tests/support/dense_exchange.h"
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
  testing::DenseExchange<float> exchange{mine, agreed, weights};
  std::unique_ptr<sync::Aggregation> gather;

  Gathering() {
    connect_all(ranks);
    for (const auto* e : sync::builtin_aggregations()) {
      if (e->name == "gather") gather = e->make();
    }
    exchange.view = 1;
    exchange.round = 5;
  }
  /// Rank 1 sends this header and a payload; returns rank 0's result.
  Progress meet(const sync::PayloadHeader& header) {
    REQUIRE(gather->begin(ranks[0], exchange));
    std::array<std::byte, sync::payload_header_bytes + 16> message{};
    std::ranges::copy(sync::encode_header(header), message.begin());
    ranks[1].send(0, Lane::payload, message);
    return gather->poll();
  }
};

TEST_CASE("Gather: takes a header that fits the plan") {
  Gathering g;
  CHECK(g.meet({.view = 1, .round = 5, .compressor = 1, .length = 16}) == Progress::done);
  CHECK(g.agreed == std::vector<float>(4, 0.5F));
}

TEST_CASE("Gather: a header of another view, round, compressor or length is refused") {
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

TEST_CASE("Gather: buffers are averages, also where parameters carry their weight") {
  Gathering g;
  const sync::ContributionShape shape{Scalar::f32, {2, 1}, 1};
  sync::Residual residual(shape);
  g.exchange.coding.shape = &shape;
  g.exchange.slot_bytes = 12;
  g.exchange.mine = residual.stage(g.exchange.mine, 0.5);
  g.exchange.residual = &residual;
  REQUIRE(g.gather->begin(g.ranks[0], g.exchange));
  const std::array<float, 4> theirs{3, 3, 3, 5};
  std::array<std::byte, sync::payload_header_bytes + 16> message{};
  std::ranges::copy(sync::encode_header({.view = 1, .round = 5, .compressor = 1, .length = 16}),
                    message.begin());
  std::memcpy(message.data() + sync::payload_header_bytes, theirs.data(), 16);
  g.ranks[1].send(0, Lane::payload, message);
  CHECK(g.gather->poll() == Progress::done);
  CHECK(g.agreed == std::vector<float>{3.5F, 3.5F, 3.5F, 3});
}

TEST_CASE("Gather: a device that has no weight sends what it has kept, and is waited for") {
  Gathering g;
  const sync::ContributionShape shape{Scalar::f32, {4}, 0};
  sync::Residual residual(shape);
  g.weights = {1, 0};
  g.exchange.mine = residual.stage(g.exchange.mine, 1);
  g.exchange.residual = &residual;
  CHECK(g.meet({.view = 1, .round = 5, .compressor = 1, .length = 16}) == Progress::done);
  g.weights = {0, 1};
  g.exchange.mine = residual.stage({}, 0);
  REQUIRE(g.gather->begin(g.ranks[0], g.exchange));
  CHECK(g.gather->poll() == Progress::pending);
}

}  // namespace
