#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/rng.h"
#include "sync/controllers/batch_rows.h"
#include "sync/controllers/linear_fit.h"
#include "sync/policy/arbiter.h"
#include "tests/support/members.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;

namespace {

using Rows = std::vector<std::uint32_t>;

std::uint64_t sum_of(const Rows& rows) {
  return std::accumulate(rows.begin(), rows.end(), std::uint64_t{0});
}

/// A device that computes a step of b rows in fixed + b / speed seconds, and its stream.
struct Machine {
  double fixed = 0;
  double speed = 1000;
  double rate = 0;
  std::uint32_t queue = 0;
  double hint = 0;   ///< configured hint of its speed
  double cliff = 0;  ///< rows above which it is four times slower; 0: none
};

/// Steps of a group under one batch policy; every round has the rows of the last plan.
class Group {
 public:
  Group(std::string policy, std::vector<Machine> all) : machines(std::move(all)) {
    config.batch_policy = std::move(policy);
    settings.set("batch.throughput.window", std::int64_t{20});
    settings.set("batch.throughput.dead_band", 0.05);
    settings.set("batch.throughput.sum", std::string("scaled"));
    settings.set("batch.throughput.start", std::string("speeds"));
    settings.set("batch.noise_share", 0.125);
  }

  const RoundPlan& step() {
    config.settings = settings_of(config, settings);
    const auto controllers = controllers_of(config, builtin_controllers()).value();
    if (state.last.next.rows.empty()) {
      state = first_state(testing::members(machines.size()), config, controllers);
      state.last.next.rows.assign(machines.size(), config.rows);
    }
    FactsTable table;
    table.facts.resize(machines.size());
    table.sections.resize(machines.size());
    times.clear();
    for (std::size_t i = 0; i < machines.size(); ++i) {
      Facts& f = table.facts[i];
      const Machine& m = machines[i];
      f.rows = state.last.next.rows[i];
      f.rows_max = 4096;
      times.push_back(m.fixed + f.rows / (m.cliff > 0 && f.rows > m.cliff ? m.speed / 4 : m.speed));
      f.compute_seconds = static_cast<float>(times.back());
      f.stream_rate = static_cast<float>(m.rate);
      f.queue_rows = m.queue;
      if (config.batch_policy == "throughput")
        f.measurements = {static_cast<float>(m.hint)};
      else
        f.measurements = {static_cast<float>(m.fixed), static_cast<float>(1 / m.speed),
                          static_cast<float>(signal), static_cast<float>(noise)};
      f.measurements.resize(measurements_of(controllers));
    }
    plan(table, config, controllers, state);
    return state.last;
  }
  /// Runs until the noise scale, which follows gradually, is known.
  void settle() {
    for (int i = 0; i < 100; ++i) step();
  }
  [[nodiscard]] const Rows& rows() const { return state.last.next.rows; }
  /// (max - min) / mean of the last step's times.
  [[nodiscard]] double spread() const {
    const auto [least, most] = std::ranges::minmax(times);
    const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size());
    return (most - least) / mean;
  }
  /// Number of changes of the rows in N steps.
  int changes(int steps) {
    int changed = 0;
    for (int i = 0; i < steps; ++i) {
      const Rows before = i == 0 ? Rows(machines.size(), config.rows) : rows();
      step();
      changed += rows() != before ? 1 : 0;
    }
    return changed;
  }

  std::vector<Machine> machines;
  PolicyConfig config{.min = 1, .max = 1024};
  Settings settings;
  PolicyState state;
  std::vector<double> times;
  double signal = 0;  ///< of a gradient
  double noise = 0;   ///< of a row
};

/// Speeds proportional to cores, as in the paper's clusters; `fixed`: share of a mean step without
/// computation.
Group cluster(const std::vector<double>& cores, double fixed) {
  std::vector<Machine> machines;
  const double mean = std::accumulate(cores.begin(), cores.end(), 0.0) / static_cast<double>(cores.size());
  for (const double c : cores) machines.push_back({.fixed = fixed * 64 / (100 * mean), .speed = 100 * c});
  return {"throughput", machines};
}

}  // namespace

TEST_CASE("Shares of rows: exactly the sum, in proportion, within bounds, the largest remainders first") {
  const auto share = [](std::vector<double> shares, std::uint64_t total,
                        const std::vector<RowBounds>& bounds) { return share_rows(shares, total, bounds); };
  const std::vector<RowBounds> wide(3, {0, 1000});
  CHECK(share({3, 5, 12}, 192, wide) == Rows{29, 48, 115});  // 28.8, 48, 115.2
  CHECK(share({1, 1, 1}, 100, wide) == Rows{34, 33, 33});
  CHECK(share({1, 1, 1}, 100, {{0, 10}, {0, 1000}, {0, 1000}}) == Rows{10, 45, 45});
  CHECK(share({1, 100, 1}, 102, {{20, 1000}, {0, 50}, {0, 1000}}) == Rows{26, 50, 26});
  CHECK(share({1, 1, 1}, 100, std::vector<RowBounds>(3, {0, 10})) == Rows{10, 10, 10});
  CHECK(share({1, 1, 1}, 3, std::vector<RowBounds>(3, {8, 10})) == Rows{8, 8, 8});
  CHECK(share({0, 0, 0}, 30, wide) == Rows{0, 0, 0});
  CHECK(share({}, 30, {}).empty());
  Rng rng(3);
  for (int i = 0; i < 300; ++i) {
    std::vector<double> shares;
    std::vector<RowBounds> bounds;
    std::uint64_t least = 0;
    std::uint64_t most = 0;
    for (std::uint64_t n = 1 + rng.below(8); n > 0; --n) {
      shares.push_back(0.01 + rng.uniform());
      const auto low = static_cast<std::uint32_t>(rng.below(50));
      bounds.push_back({low, low + static_cast<std::uint32_t>(rng.below(200))});
      least += bounds.back().least;
      most += bounds.back().most;
    }
    const std::uint64_t total = least + rng.below(most - least + 1);
    const Rows rows = share_rows(shares, total, bounds);
    CHECK(sum_of(rows) == total);
    for (std::size_t k = 0; k < rows.size(); ++k)
      CHECK((rows[k] >= bounds[k].least && rows[k] <= bounds[k].most));
  }
}

TEST_CASE(
    "Dynamic batching: equal times after two adjustments without fixed costs, eight with, the sum the same") {
  const std::vector<std::vector<double>> clusters{{13, 13, 13}, {9, 12, 18},   {4, 11, 24},
                                                  {2, 17, 20},  {9, 9, 6, 24}, {6, 6, 4, 32}};
  for (const auto& cores : clusters)
    for (const double fixed : {0.0, 0.5}) {
      INFO(cores.front(), " to ", cores.back(), " cores, fixed ", fixed);
      Group group = cluster(cores, fixed);
      const int changes = group.changes(200);
      CHECK(changes <= (fixed == 0 ? 2 : 8));
      CHECK(sum_of(group.rows()) == 64 * cores.size());
      group.step();
      CHECK(group.spread() < 0.05 + 1.0 / *std::ranges::min_element(group.rows()));  // of whole rows
    }
}

TEST_CASE(
    "Dynamic batching: begins with the speeds that devices are said to have, and corrects what is wrong") {
  const auto hinted = [](std::vector<double> hints) {
    Group group = cluster({3, 5, 12}, 0);
    for (std::size_t i = 0; i < hints.size(); ++i) group.machines[i].hint = hints[i];
    return group;
  };
  Group right = hinted({3, 5, 12});
  right.step();
  CHECK(right.rows() == Rows{29, 48, 115});
  for (int i = 0; i < 100; ++i) right.step();
  CHECK(right.rows() == Rows{29, 48, 115});

  Group wrong = hinted({5, 5, 10});
  wrong.step();
  CHECK(wrong.rows() == Rows{48, 48, 96});
  for (int i = 0; i < 41; ++i) wrong.step();
  CHECK(wrong.rows() == Rows{29, 48, 115});

  Group unknown = hinted({3, 0, 12});
  unknown.step();
  CHECK(unknown.rows() == Rows{64, 64, 64});
  Group even = hinted({3, 5, 12});
  even.settings.set("batch.throughput.start", std::string("even"));
  even.step();
  CHECK(even.rows() == Rows{64, 64, 64});
}

TEST_CASE("Dynamic batching: within the dead band nothing changes") {
  Group group("throughput", {{0, 1000}, {0, 1000 / 1.04}});
  CHECK(group.changes(200) == 0);
  group.settings.set("batch.throughput.dead_band", 0.01);
  CHECK(group.changes(200) == 1);
}

TEST_CASE("Dynamic batching: as published, the sum is brought back by the same for everybody") {
  Group group = cluster({3, 5, 12}, 0);
  group.settings.set("batch.throughput.sum", std::string("shifted"));
  group.changes(21);
  CHECK(group.rows() == Rows{16, 43, 135});  // 15.8, 42.1 and 134.2, rounded up
}

TEST_CASE("Dynamic batching: a batch that made its device slower is the last of that size for a while") {
  Group group("throughput", {{0, 1000}, {0, 4000}});
  group.machines[1].cliff = 80;  // it has no memory for more
  group.changes(21);
  CHECK(group.rows() == Rows{26, 102});
  group.changes(21);
  CHECK(group.rows()[1] <= 67);
  for (int i = 0; i < 4; ++i) {
    group.changes(21);
    CHECK(group.rows()[1] <= 80);
  }
}

TEST_CASE("Dynamic batching: who became slower for another reason is not held down") {
  Group group("throughput", {{0, 1000}, {0, 4000}});
  group.changes(21);
  CHECK(group.rows() == Rows{26, 102});
  for (auto& machine : group.machines) machine.speed /= 3;  // other processes share the processors now
  group.changes(21);
  group.changes(21);
  group.changes(21);
  CHECK(group.rows() == Rows{26, 102});
}

TEST_CASE("Dynamic batching: all wait until everybody has its rows") {
  Group group = cluster({1, 3}, 0);
  CHECK(group.step().next.whole);
}

TEST_CASE("Unified: plentiful streams are shared by speed, such that a step has the rows that pay") {
  Group group("unified", {{0.002, 1000, 1e6, 4096}, {0.004, 4000, 1e6, 4096}});
  group.signal = 1;
  group.noise = 800;
  group.settle();
  // An eighth of 800, in T with 1000 (T - 0.002) + 4000 (T - 0.004) = 100: 23.6 ms.
  CHECK(sum_of(group.rows()) == 100);
  CHECK(group.rows()[0] == 22);
  CHECK(group.rows()[1] == 78);
}

TEST_CASE(
    "Unified: plentiful compute brings what streams bring in one tick, and nobody waits for a slow one") {
  Group group("unified", {{0.0005, 1e5, 100}, {0.0005, 1e5, 50}, {0.0005, 1e5, 20}, {0.0005, 1e5, 0.5}});
  group.signal = 1;
  group.noise = 80;
  group.settle();
  CHECK(sum_of(group.rows()) == 10);  // in 59 ms
  CHECK(group.rows() == Rows{6, 3, 1, 0});
  CHECK(to_seconds(group.state.last.next.wait) == doctest::Approx(0.058).epsilon(0.02));
  CHECK_FALSE(group.state.last.next.rest);
  group.noise = 1e6;
  group.settle();
  CHECK(sum_of(group.rows()) == 17);  // more would pay than arrive in batch.tick
}

TEST_CASE("Unified: a backlog becomes steps of as many rows as pay, one after the other") {
  Group group("unified", {{0.001, 1e4, 10, 10'000}, {0.001, 1e4, 10, 0}});
  group.signal = 1;
  group.noise = 256;
  group.settle();
  CHECK(group.rows() == Rows{32, 0});
  CHECK(to_seconds(group.state.last.next.wait) < 0.005);
}

TEST_CASE("Unified: of own steps until the group meets again, each has its part of what waits") {
  Group group("unified", {{0.001, 1e9, 0, 1000}, {0.001, 1e9, 0, 0}});
  group.config.sync_policy = "periodic";
  group.settings.set("sync.local_steps", std::int64_t{50});
  group.settings.set("sync.own_time", Duration(0));
  group.settings.set("sync.overlap", std::string("never"));
  group.signal = 1;
  group.noise = 1e5;
  group.settle();
  CHECK(group.rows() == Rows{20, 0});
}

TEST_CASE("Unified: steps grow until devices keep up with their streams, noise or not") {
  Group group("unified", {{0.01, 1000, 900, 0}, {0.01, 1000, 100, 0}});
  group.signal = 1;
  group.noise = 8;
  group.settle();
  // Fixed costs of 10 ms leave 900 rows/s no room below ticks of 100 ms; longer than 50 saves little.
  CHECK(group.rows()[0] >= 40);
  CHECK(group.rows()[0] + group.rows()[1] <= 50);
}

TEST_CASE("Unified: rests where nothing comes, begins before anything is known, and keeps its bounds") {
  Group silent("unified", {{0, 1000, 0}, {0, 1000, 0}});
  silent.step();
  CHECK(silent.rows() == Rows{0, 0});
  CHECK(silent.state.last.next.rest);
  Group slow("unified", {{0, 1000, 1}, {0, 1000, 1}});
  slow.step();
  CHECK(slow.state.last.next.rest);
  CHECK(slow.state.last.next.wait == slow.config.max_wait);
  Group unknown("unified", {{0, 1e30, 1e9}, {0, 1e30, 1e9}});
  for (Machine& m : unknown.machines) m.speed = std::numeric_limits<double>::infinity();
  unknown.step();
  CHECK(sum_of(unknown.rows()) == 16);
  Group greedy("unified", {{0, 1e9, 1e9}, {0, 1e9, 1e9}});
  greedy.signal = -1;  // hidden by noise: the maximum number of rows
  greedy.noise = 1;
  greedy.config.max = 100;
  greedy.settle();
  CHECK(greedy.rows() == Rows{100, 100});
  Group garbage("unified", {{std::nan(""), -5, std::nan("")}, {1e300, 1e-300, -1e300}});
  garbage.noise = std::nan("");
  garbage.step();
  for (const std::uint32_t rows : garbage.rows()) CHECK(rows <= 1024);
}

TEST_CASE("Batches: memory that somebody else has written leads to rows within bounds") {
  for (const char* policy : {"throughput", "unified"}) {
    Group group(policy, {{0, 1000, 100}, {0, 3000, 100}, {0.01, 500, 5000}});
    group.settings.set("batch.throughput.window", std::int64_t{1});
    group.step();
    Rng rng(7);
    for (int i = 0; i < 300; ++i) {
      for (double& value : group.state.memory.front().values)
        if (rng.below(2) == 0)
          value = (rng.uniform() - 0.5) * std::pow(10.0, static_cast<double>(rng.below(600)) - 300);
      group.step();
      for (const std::uint32_t rows : group.rows()) CHECK(rows <= 1024);
      for (const double value : group.state.memory.front().values) CHECK(std::isfinite(value));
    }
  }
}

TEST_CASE("A fit of seconds by rows finds both numbers once rows differ, and stays above 0") {
  LinearFit::Memory memory{};
  LinearFit fit(memory, {.kept = 0.98, .fixed_part = 0.25, .doubt = 0.02});
  CHECK(fit.fixed() == 0);
  CHECK(fit.each() == 0);
  fit.add(100, 0.1);
  CHECK(fit.fixed() == doctest::Approx(0.025));
  CHECK(fit.seconds(100) == doctest::Approx(0.1));
  Rng rng(1);
  for (int i = 0; i < 300; ++i) {
    const double rows = 1 + static_cast<double>(rng.below(200));
    fit.add(rows, 0.003 + rows / 5000);
  }
  CHECK(fit.fixed() == doctest::Approx(0.003).epsilon(0.2));
  CHECK(fit.each() == doctest::Approx(1.0 / 5000).epsilon(0.05));
  for (int i = 0; i < 300; ++i) fit.add(i % 2 == 0 ? 10 : 20, i % 2 == 0 ? 1 : 0.1);  // the more, the faster
  CHECK(fit.each() >= 0);
  CHECK(fit.fixed() >= 0);
}
