#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <mutex>

#include "core/rng.h"
#include "sync/collective/aggregation.h"
#include "tests/conformance/transport_harness.h"
#include "tests/support/dense_exchange.h"

/// Tests for every Aggregation over a Transport; `Net` as in transport_suite.h.
namespace rivulet::testing {

inline const sync::AggregationEntry& aggregation_named(std::string_view name) {
  for (const auto* entry : sync::builtin_aggregations()) {
    if (entry->name == name) return *entry;
  }
  RIVULET_CHECK(false, "no such aggregation");
}

/// In every third round one rank has no rows, a different one each time.
inline std::vector<double> early_weights(std::uint32_t world, std::uint64_t round) {
  std::vector<double> weights(world, 0.0);
  for (std::uint32_t r = 0; r < world; ++r)
    weights[r] =
        static_cast<double>(r + 1 + round) / static_cast<double>(world * (world + 1) / 2 + world * round);
  if (round % 3 == 2) weights[round / 3 % world] = 0;
  return weights;
}

template <class T>
std::vector<T> contribution_of(std::uint32_t rank, std::size_t count, std::uint64_t round) {
  std::vector<T> numbers(count);
  Rng rng(rank * 1000 + round);
  for (T& x : numbers) x = static_cast<T>(rng.normal());
  return numbers;
}

/// Weight * contribution of all ranks, added in rank order in the elements' type.
template <class T>
std::vector<T> reference_sum(const std::vector<double>& weights, std::size_t count, std::uint64_t round) {
  std::vector<T> sum(count, T{0});
  for (std::uint32_t r = 0; r < weights.size(); ++r) {
    if (weights[r] <= 0) continue;
    const auto numbers = contribution_of<T>(r, count, round);
    for (std::size_t i = 0; i < count; ++i)
      sum[i] += static_cast<T>(weights[r] * static_cast<double>(numbers[i]));
  }
  return sum;
}

/// Result of one rank: must have the same bits on all.
template <class T>
struct Outcomes {
  std::mutex mutex;
  std::map<std::uint64_t, std::vector<std::vector<T>>> by_round;
};

template <class T>
void aggregate(Node& node, std::string_view name, std::size_t count, std::vector<double> weights,
               std::uint64_t round, Outcomes<T>& outcomes) {
  auto aggregation = aggregation_named(name).make();
  auto mine = contribution_of<T>(node.rank(), count, round);
  const auto untouched = mine;
  std::vector<T> agreed(count, T{77});
  DenseExchange<T> exchange(mine, agreed, weights);
  exchange.round = round;
  auto begun = aggregation->begin(node.transport, exchange);
  if (!node.expect(static_cast<bool>(begun), "begin")) return;
  const Progress p = node.wait([&] { return aggregation->poll(); });
  node.expect(p == Progress::done,
              std::string(name) + (p == Progress::failed ? ": " + aggregation->error().message : ""));
  node.expect(mine == untouched, "the contribution was written to");
  const std::lock_guard lock(outcomes.mutex);
  outcomes.by_round[round].push_back(agreed);
}

template <class T, class Net>
void aggregations_agree(std::string_view name, double tolerance) {
  for (const std::uint32_t world : {2U, 3U, 4U}) {
    Net net;
    Outcomes<T> outcomes;
    std::map<std::uint64_t, std::pair<std::size_t, std::vector<double>>> rounds;
    std::uint64_t round = 0;
    for (const std::size_t count :
         {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{61706}, std::size_t{400001}}) {
      std::vector<double> weights(world, 0.0);
      for (std::uint32_t r = 0; r < world; ++r) weights[r] = (r + 1.0) / (world * (world + 1) / 2.0);
      rounds[round++] = {count, weights};
      weights[round % world] = 0;  // one without rows
      rounds[round++] = {count, weights};
    }
    const auto problems = play_group(net, world, [&](Node& node) {
      for (const auto& [index, what] : rounds)
        aggregate<T>(node, name, what.first, what.second, index, outcomes);
    });
    CHECK_MESSAGE(problems.empty(), joined(problems));
    for (const auto& [index, results] : outcomes.by_round) {
      const auto expected = reference_sum<T>(rounds[index].second, rounds[index].first, index);
      REQUIRE(results.size() == world);
      for (const auto& result : results) {
        CHECK(std::memcmp(result.data(), results[0].data(), result.size() * sizeof(T)) == 0);
      }
      double error = 0, norm = 0;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        error += std::pow(static_cast<double>(results[0][i]) - static_cast<double>(expected[i]), 2);
        norm += std::pow(static_cast<double>(expected[i]), 2);
      }
      CHECK(std::sqrt(error) <= tolerance * std::sqrt(norm));
    }
  }
}

/// One rank over ten rounds with speculation: in every third round one rank has no rows, and the fifth has
/// another plan than predicted.
template <class T>
void gather_early(Node& node, std::size_t count, Outcomes<T>& outcomes) {
  const auto early = aggregation_named("gather").make_speculative(false);
  std::vector<T> agreed(count);
  for (std::uint64_t round = 0; round < 10; ++round) {
    auto mine = contribution_of<T>(node.rank(), count, round);
    DenseExchange<T> exchange(mine, agreed, {});
    exchange.round = round;
    const auto weights = early_weights(node.world(), round);
    node.expect(bool(early->send(node.transport, exchange, weights[node.rank()] > 0)), "send");
    std::ranges::fill(mine, T{55});  // the transport has its own copy
    if (round == 5) {
      std::vector<std::uint32_t> rows;
      for (const double weight : weights) rows.push_back(weight > 0 ? 9 : 0);
      early->give_up(rows);
    } else {
      exchange.weights = weights;
      node.expect(bool(early->begin(node.transport, exchange)), "begin");
    }
    const Progress p = node.wait([&] { return early->poll(); });
    if (!node.expect(p == Progress::done, p == Progress::failed ? early->error().message : "early")) break;
    const std::lock_guard lock(outcomes.mutex);
    if (round != 5) outcomes.by_round[round].push_back(agreed);
  }
  node.goodbye();
  node.transport.close();  // receives for an eleventh round are posted
}

template <class T, class Net>
void early_gather_agrees() {
  for (const std::uint32_t world : {2U, 3U, 4U})
    for (const std::size_t count : {std::size_t{1}, std::size_t{61706}, std::size_t{131072}}) {
      Net net;
      Outcomes<T> outcomes;
      const auto problems =
          play_group(net, world, [&](Node& node) { gather_early<T>(node, count, outcomes); }, false);
      CHECK_MESSAGE(problems.empty(), joined(problems));
      CHECK(outcomes.by_round.size() == 9);
      for (const auto& [round, results] : outcomes.by_round) {
        CHECK(results.size() == world);
        const auto expected = reference_sum<T>(early_weights(world, round), count, round);
        for (const auto& result : results)
          CHECK(std::memcmp(result.data(), expected.data(), count * sizeof(T)) == 0);
      }
    }
}

TEST_CASE_TEMPLATE_DEFINE("Aggregation: gather that is sent before its plan has the same bits", Net,
                          aggregation_early) {
  early_gather_agrees<float, Net>();
  early_gather_agrees<double, Net>();
}

TEST_CASE_TEMPLATE_DEFINE("Aggregation: gather has the bits of the sum in rank order, on every rank", Net,
                          aggregation_gather) {
  aggregations_agree<float, Net>("gather", 0);
  aggregations_agree<double, Net>("gather", 0);
}

TEST_CASE_TEMPLATE_DEFINE("Aggregation: sum has the same bits on every rank and is right to rounding", Net,
                          aggregation_sum) {
  for (const char* how : {"sum", "ring", "halving_doubling"}) aggregations_agree<float, Net>(how, 1e-6);
  aggregations_agree<double, Net>("sum", 1e-14);
}

#define RIVULET_AGGREGATION_SUITE(Net)                \
  TEST_CASE_TEMPLATE_INVOKE(aggregation_gather, Net); \
  TEST_CASE_TEMPLATE_INVOKE(aggregation_early, Net);  \
  TEST_CASE_TEMPLATE_INVOKE(aggregation_sum, Net)

}  // namespace rivulet::testing
