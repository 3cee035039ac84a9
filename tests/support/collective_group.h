#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/rng.h"
#include "runtime/config/config.h"
#include "sync/collective/aggregation.h"
#include "tests/support/dense_exchange.h"
#include "tests/support/memory_ranks.h"

namespace rivulet::testing {

/// Ranks of one process that sum contributions by one collective with a compressor, each with its residual.
struct CollectiveGroup {
  struct Options {
    std::string collective;
    std::string compressor = "topk";
    sync::ContributionShape shape{Scalar::f32, {301, 40, 7}, 5};
    bool first_has_rows = true;  ///< otherwise its weight is 0
    double keep = 0.1;
    Settings settings = runtime::Config::default_settings();
  };

  CollectiveGroup(std::uint32_t world, Options wanted) : options(std::move(wanted)), ranks(world) {
    connect_all(ranks);
    const bool all = options.first_has_rows || world == 1;
    for (std::uint32_t r = 0; r < world; ++r) {
      residuals.push_back(std::make_unique<sync::Residual>(options.shape));
      collectives.push_back(make());
      agreed.emplace_back(options.shape.count());
      mine.emplace_back(options.shape.count());
      weights.push_back(all ? 1.0 / world : r == 0 ? 0.0 : 1.0 / (world - 1));
    }
  }

  [[nodiscard]] std::unique_ptr<sync::Aggregation> make() const {
    for (const auto* entry : sync::builtin_aggregations())
      if (entry->name == options.collective) return entry->make();
    FAIL("no such collective");
    return nullptr;
  }
  void begin(std::uint32_t r, std::uint64_t round) {
    sync::Exchange exchange;
    exchange.view = 1;
    exchange.round = round;
    exchange.weights = weights;
    exchange.mine = residuals[r]->stage(view_over(mine[r]), weights[r]);
    exchange.agreed = view_over(agreed[r]);
    exchange.compressor = &compressor_named(options.compressor);
    exchange.coding = {&options.shape, options.keep, round, &options.settings};
    exchange.slot_bytes = exchange.compressor->slot_bytes(options.shape, options.keep, options.settings);
    exchange.residual = residuals[r].get();
    REQUIRE(collectives[r]->begin(ranks[r], exchange));
  }
  void draw(std::uint64_t round) {
    for (std::uint32_t r = 0; r < mine.size(); ++r) {
      Rng rng(derive_seed(round, "collective group", r));
      for (float& x : mine[r]) x = static_cast<float>(rng.normal());
    }
  }
  /// Sums the values in `mine`.
  void run(std::uint64_t round) {
    for (std::uint32_t r = 0; r < mine.size(); ++r) begin(r, round);
    for (int pass = 0; pass < 80; ++pass)
      for (auto& collective : collectives) REQUIRE(collective->poll() != Progress::failed);
    for (std::uint32_t r = 0; r < mine.size(); ++r) {
      CHECK(collectives[r]->poll() == Progress::done);
      residuals[r]->commit();
    }
  }
  [[nodiscard]] std::vector<float> kept(std::uint32_t r) const {
    std::vector<float> numbers(options.shape.parameters());
    const auto bytes = residuals[r]->numbers();
    if (!bytes.empty()) std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }
  [[nodiscard]] double contributed(std::size_t i) const {
    double sum = 0;
    for (std::uint32_t r = 0; r < mine.size(); ++r) sum += weights[r] * double{mine[r][i]};
    return sum;
  }

  Options options;
  Ranks ranks;
  std::vector<std::unique_ptr<sync::Residual>> residuals;
  std::vector<std::unique_ptr<sync::Aggregation>> collectives;
  std::vector<std::vector<float>> mine, agreed;
  std::vector<double> weights;
};

/// Runs `rounds`. Checks in each that all ranks have the same bits, that buffers are averages, and that
/// residuals keep the rest. Calls `look` for each round.
template <class Look>
void check_that_nothing_is_lost(CollectiveGroup& group, std::uint64_t rounds, Look look) {
  const std::size_t p = group.options.shape.parameters();
  std::vector<double> contributed(p), sum(p);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    group.draw(round);
    group.run(round);
    for (const auto& agreed : group.agreed) CHECK(agreed == group.agreed[0]);
    for (std::size_t i = 0; i < p; ++i) {
      sum[i] += group.agreed[0][i];
      contributed[i] += group.contributed(i);
    }
    for (std::size_t b = p; b < group.options.shape.count(); ++b)
      CHECK(group.agreed[0][b] == doctest::Approx(group.contributed(b)).epsilon(1e-5));
    look(group.agreed[0]);
  }
  for (std::uint32_t r = 0; r < group.mine.size(); ++r) {
    const auto numbers = group.kept(r);
    for (std::size_t i = 0; i < p; ++i) sum[i] += numbers[i];
  }
  for (std::size_t i = 0; i < p; ++i) CHECK(std::abs(sum[i] - contributed[i]) < 1e-4);
}

inline std::size_t nonzero_of(const std::vector<float>& agreed, std::size_t parameters) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < parameters; ++i) count += agreed[i] != 0 ? 1 : 0;
  return count;
}

}  // namespace rivulet::testing
