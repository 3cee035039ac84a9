// One rank's largest numbers say which ones all sum: nothing is lost, and all ranks hold the same bits.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/rng.h"
#include "runtime/config/config.h"
#include "sync/collective/aggregation.h"
#include "tests/support/dense_exchange.h"
#include "tests/support/memory_ranks.h"

using namespace rivulet;
using testing::connect_all;
using testing::Ranks;
using testing::view_over;

namespace {

std::unique_ptr<sync::Aggregation> shared_index() {
  for (const auto* entry : sync::builtin_aggregations())
    if (entry->name == "shared_index") return entry->make();
  FAIL("no such collective");
  return nullptr;
}

/// A group whose ranks contribute new numbers in each round.
struct Group {
  explicit Group(std::uint32_t world) : ranks(world) {
    connect_all(ranks);
    for (std::uint32_t r = 0; r < world; ++r) {
      residuals.push_back(std::make_unique<sync::Residual>(shape));
      collectives.push_back(shared_index());
      agreed.emplace_back(shape.count());
      mine.emplace_back(shape.count());
      weights.push_back(1.0 / world);
    }
  }

  void begin(std::uint32_t r, std::uint64_t round) {
    sync::Exchange exchange;
    exchange.view = 1;
    exchange.round = round;
    exchange.weights = weights;
    exchange.mine = residuals[r]->stage(view_over(mine[r]), weights[r]);
    exchange.agreed = view_over(agreed[r]);
    exchange.compressor = &testing::compressor_named("topk");
    exchange.coding = {&shape, 0.1, round, &settings};
    exchange.residual = residuals[r].get();
    REQUIRE(collectives[r]->begin(ranks[r], exchange));
  }
  void draw(std::uint64_t round) {
    for (std::uint32_t r = 0; r < mine.size(); ++r) {
      Rng rng(derive_seed(round, "shared index", r));
      for (float& x : mine[r]) x = static_cast<float>(rng.normal());
    }
  }
  void run(std::uint64_t round) {
    for (std::uint32_t r = 0; r < mine.size(); ++r) begin(r, round);
    for (int pass = 0; pass < 40; ++pass)
      for (auto& collective : collectives) REQUIRE(collective->poll() != Progress::failed);
    for (std::uint32_t r = 0; r < mine.size(); ++r) {
      CHECK(collectives[r]->poll() == Progress::done);
      residuals[r]->commit();
    }
  }
  [[nodiscard]] std::vector<float> kept(std::uint32_t r) const {
    std::vector<float> numbers(shape.parameters());
    const auto bytes = residuals[r]->numbers();
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }

  const sync::ContributionShape shape{Scalar::f32, {301, 40, 7}, 5};
  const Settings settings = runtime::Config::default_settings();
  Ranks ranks;
  std::vector<std::unique_ptr<sync::Residual>> residuals;
  std::vector<std::unique_ptr<sync::Aggregation>> collectives;
  std::vector<std::vector<float>> mine, agreed;
  std::vector<double> weights;
};

}  // namespace

TEST_CASE("Shared index: all ranks agree on the same bits, and what is not agreed on is kept") {
  for (const std::uint32_t world : {1U, 2U, 3U, 4U, 7U}) {
    CAPTURE(world);
    Group group(world);
    const std::size_t p = group.shape.parameters();
    std::vector<double> contributed(p), sum(p);
    for (std::uint64_t round = 0; round < 30; ++round) {
      group.draw(round);
      group.run(round);
      std::size_t nonzero = 0;
      for (std::uint32_t r = 1; r < world; ++r) CHECK(group.agreed[r] == group.agreed[0]);
      for (std::size_t i = 0; i < p; ++i) {
        sum[i] += group.agreed[0][i];
        nonzero += group.agreed[0][i] != 0 ? 1 : 0;
        for (std::uint32_t r = 0; r < world; ++r) contributed[i] += group.weights[r] * group.mine[r][i];
      }
      CHECK(nonzero <= 35);
      CHECK(nonzero >= 32);
      for (std::size_t b = 0; b < group.shape.buffers; ++b) {
        double mean = 0;
        for (std::uint32_t r = 0; r < world; ++r) mean += group.weights[r] * group.mine[r][p + b];
        CHECK(group.agreed[0][p + b] == doctest::Approx(mean).epsilon(1e-5));
      }
    }
    for (std::uint32_t r = 0; r < world; ++r) {
      const auto numbers = group.kept(r);
      for (std::size_t i = 0; i < p; ++i) sum[i] += numbers[i];
    }
    for (std::size_t i = 0; i < p; ++i) CHECK(std::abs(sum[i] - contributed[i]) < 1e-4);
  }
}

TEST_CASE("Shared index: each rank is root once in as many rounds as there are ranks") {
  Group group(4);
  for (std::uint64_t round = 0; round < 8; ++round) {
    group.draw(round);
    // Each has one that is large, and is 0 where the others have theirs.
    for (std::uint32_t r = 0; r < 4; ++r)
      for (std::uint32_t other = 0; other < 4; ++other)
        group.mine[r][10 * (other + 1)] = other == r ? 1000.0F : 0.0F;
    for (std::uint32_t r = 0; r < 4; ++r) group.residuals[r]->forget();
    group.run(round);
    for (std::uint32_t r = 0; r < 4; ++r) CHECK((group.agreed[0][10 * (r + 1)] != 0) == (r == round % 4));
  }
}

TEST_CASE("Shared index: positions of a root that lie in no model end it with the root's rank") {
  Group group(2);
  group.draw(1);
  group.begin(0, 1);  // rank 1 is root
  std::vector<std::byte> garbage(4096, std::byte{0xff});
  Group other(2);  // of the size that a root sends
  other.draw(1);
  other.begin(1, 1);
  const std::size_t size = other.ranks[1].counters().bytes_sent;
  REQUIRE(size > 8);
  garbage.resize(size);
  group.ranks[1].send(0, sync::Lane::phase, garbage);
  Progress p = Progress::pending;
  for (int i = 0; i < 4 && p == Progress::pending; ++i) p = group.collectives[0]->poll();
  CHECK(p == Progress::failed);
  CHECK(group.collectives[0]->error().code == ErrorCode::protocol);
  CHECK(group.collectives[0]->error().message.find("rank 1") != std::string::npos);
}
