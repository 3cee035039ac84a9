// Slices that their owners add up and compress again: nothing is lost, and all ranks hold the same bits.
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

std::unique_ptr<sync::Aggregation> two_sided() {
  for (const auto* entry : sync::builtin_aggregations())
    if (entry->name == "two_sided") return entry->make();
  FAIL("no such collective");
  return nullptr;
}

/// A group whose ranks contribute new numbers in each round, through a compressor.
struct Group {
  Group(std::uint32_t world, const char* compressor, std::size_t buffers = 5)
      : shape{Scalar::f32, {301, 40, 7}, buffers},
        ranks(world),
        entry(&testing::compressor_named(compressor)) {
    connect_all(ranks);
    for (std::uint32_t r = 0; r < world; ++r) {
      residuals.push_back(std::make_unique<sync::Residual>(shape));
      collectives.push_back(two_sided());
      agreed.emplace_back(shape.count());
      mine.emplace_back(shape.count());
      weights.push_back(r == 0 ? 0.0 : 1.0 / (world - 1));
    }
    if (world == 1) weights = {1.0};
  }

  /// Of one rank in a round; all in the end have the sum.
  void begin(std::uint32_t r, std::uint64_t round) {
    sync::Exchange exchange;
    exchange.view = 1;
    exchange.round = round;
    exchange.weights = weights;
    exchange.mine = residuals[r]->stage(view_over(mine[r]), weights[r]);
    exchange.agreed = view_over(agreed[r]);
    exchange.compressor = entry;
    exchange.coding = {&shape, 0.1, round, &settings};
    exchange.residual = residuals[r].get();
    REQUIRE(collectives[r]->begin(ranks[r], exchange));
  }
  void draw(std::uint64_t round) {
    for (std::uint32_t r = 0; r < mine.size(); ++r) {
      Rng rng(derive_seed(round, "two-sided", r));
      for (float& x : mine[r]) x = static_cast<float>(rng.normal());
    }
  }
  void run(std::uint64_t round) {
    draw(round);
    for (std::uint32_t r = 0; r < mine.size(); ++r) begin(r, round);
    for (int pass = 0; pass < 3; ++pass)
      for (auto& collective : collectives) REQUIRE(collective->poll() != Progress::failed);
    for (std::uint32_t r = 0; r < mine.size(); ++r) {
      CHECK(collectives[r]->poll() == Progress::done);
      residuals[r]->commit();
    }
  }

  const sync::ContributionShape shape;
  const Settings settings = runtime::Config::default_settings();
  Ranks ranks;
  const sync::CompressorEntry* entry;
  std::vector<std::unique_ptr<sync::Residual>> residuals;
  std::vector<std::unique_ptr<sync::Aggregation>> collectives;
  std::vector<std::vector<float>> mine, agreed;
  std::vector<double> weights;
};

}  // namespace

TEST_CASE("Two-sided: all ranks agree on the same bits, and what is not agreed on is kept by somebody") {
  for (const char* compressor : {"topk", "random-k"})
    for (const std::uint32_t world : {1U, 2U, 3U, 4U, 7U}) {
      CAPTURE(compressor);
      CAPTURE(world);
      Group group(world, compressor);
      const std::size_t p = group.shape.parameters();
      std::vector<double> contributed(p), sum(p);
      std::size_t nonzero = 0;
      for (std::uint64_t round = 0; round < 40; ++round) {
        group.run(round);
        for (std::uint32_t r = 1; r < world; ++r) CHECK(group.agreed[r] == group.agreed[0]);
        for (std::size_t i = 0; i < p; ++i) {
          sum[i] += group.agreed[0][i];
          nonzero += group.agreed[0][i] != 0 ? 1 : 0;
          for (std::uint32_t r = 0; r < world; ++r) contributed[i] += group.weights[r] * group.mine[r][i];
        }
        for (std::size_t b = 0; b < group.shape.buffers; ++b) {
          double mean = 0;
          for (std::uint32_t r = 0; r < world; ++r) mean += group.weights[r] * group.mine[r][p + b];
          CHECK(group.agreed[0][p + b] == doctest::Approx(mean).epsilon(1e-5));
        }
      }
      for (std::uint32_t r = 0; r < world; ++r) {
        const auto bytes = group.residuals[r]->numbers();
        if (bytes.empty()) continue;
        std::vector<float> kept(p);
        std::memcpy(kept.data(), bytes.data(), bytes.size());
        for (std::size_t i = 0; i < p; ++i) sum[i] += kept[i];
      }
      for (std::size_t i = 0; i < p; ++i) CHECK(std::abs(sum[i] - contributed[i]) < 1e-4);
      // A tenth of all numbers is agreed on in each round, however many ranks there are.
      CHECK(nonzero > 40 * p * 6 / 100);
      CHECK(nonzero < 40 * p * 14 / 100);
    }
}

TEST_CASE("Two-sided: sends about two slots' bytes, whatever the size of the group") {
  const auto sent_by = [](std::uint32_t world) {
    Group group(world, "topk", 0);
    group.run(0);
    return group.ranks[0].counters().bytes_sent;
  };
  const auto slot = [](std::uint32_t parts) {
    const sync::ContributionShape part{Scalar::f32, {348 / parts}, 0};
    return testing::compressor_named("topk").slot_bytes(part, 0.1, runtime::Config::default_settings());
  };
  CHECK(sent_by(1) == 0);
  for (const std::uint32_t world : {2U, 4U, 6U}) {
    CAPTURE(world);
    const std::uint64_t parts = 2 * (world - 1) * slot(world);
    CHECK(sent_by(world) >= parts - 2 * world * 8);
    CHECK(sent_by(world) <= parts + 2 * world * 16);  // tensors that a cut parts have a scale on each side
  }
}

TEST_CASE("Two-sided: bytes of a peer that are no slot end it with the peer's rank") {
  for (const auto lane : {sync::Lane::sum, sync::Lane::phase}) {
    Group group(2, "topk", 0);
    group.draw(0);
    group.begin(0, 0);
    const auto slot_of = [&](std::size_t from, std::size_t to) {
      sync::ContributionShape part{Scalar::f32, {}, 0};
      std::size_t at = 0;
      for (const std::size_t tensor : group.shape.tensors) {
        const std::size_t begin = std::max(at, from), end = std::min(at + tensor, to);
        if (begin < end) part.tensors.push_back(end - begin);
        at += tensor;
      }
      return group.entry->slot_bytes(part, 0.1, group.settings);
    };
    std::vector<std::byte> garbage(slot_of(0, 174), std::byte{0xff}),
        of_second(slot_of(174, 348), std::byte{0xff});
    if (lane == sync::Lane::phase) std::ranges::fill(garbage, std::byte{0});
    garbage[6] = lane == sync::Lane::phase ? std::byte{0} : garbage[6];
    if (lane == sync::Lane::phase) garbage[5] = std::byte{3};  // no entries, values as i8
    group.ranks[1].send(0, sync::Lane::sum, garbage);
    group.ranks[1].send(0, sync::Lane::phase, of_second);
    Progress p = Progress::pending;
    for (int i = 0; i < 4 && p == Progress::pending; ++i) p = group.collectives[0]->poll();
    CHECK(p == Progress::failed);
    CHECK(group.collectives[0]->error().code == ErrorCode::protocol);
    CHECK(group.collectives[0]->error().message.find("rank 1") != std::string::npos);
    CHECK(group.collectives[0]->error().message.find(lane == sync::Lane::sum ? "slot of" : "sum of") == 0);
  }
}
