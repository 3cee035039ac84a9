#include "sync/policy/divergence.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sync/policy/arbiter.h"
#include "tests/support/members.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;

namespace {

/// Three devices with rows that synchronize after every batch, round by round.
struct Group {
  PolicyConfig config;
  Controllers controllers;
  PolicyState state;
  std::uint64_t step = 0;
  std::uint64_t rows = 0;

  explicit Group(std::uint64_t checkpoint_rounds = 10) {
    config.on_divergence = "roll_back";
    config.checkpoint_rounds = checkpoint_rounds;
    controllers = controllers_of(config, builtin_controllers()).value();
    enter(7);
  }
  void enter(std::uint64_t view) {
    state = first_state(testing::members(3), config, controllers, state.memory, view);
  }
  RoundPlan round(std::vector<std::uint32_t> flags, std::uint32_t each = 100,
                  std::vector<std::uint32_t> own = {}) {
    FactsTable table;
    table.facts.resize(3);
    table.sections.resize(3);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      Facts& f = table.facts[rank];
      f.rank = rank;
      f.step = step;
      f.agreed_rows = rows;
      f.rows = own.empty() ? each : own[rank];
      f.rows_max = 1024;
      f.flags = flags[rank];
    }
    RoundPlan made = plan(table, config, controllers, state);
    if (made.now.mode == Mode::gradients) ++step, rows += 3 * each;
    return made;
  }
  /// After a checkpoint and its trial.
  Stamp saved_and_good() {
    while (!round({0, 0, 0}).now.checkpoint) continue;
    const Stamp saved{state.view, step};
    round({flag_good, flag_good, flag_good});
    return saved;
  }
};

constexpr std::uint32_t bad = flag_diverged;

}  // namespace

TEST_CASE("Divergence: a checkpoint is good when most devices have found it so by rows behind it") {
  Group group;
  CHECK(Divergence::good(group.state.memory).step == 0);
  for (int i = 0; i < 9; ++i) group.round({flag_good, flag_good, flag_good});
  CHECK(Divergence::on_trial(group.state.memory).step == 0);  // earlier votes do not count
  CHECK(group.round({flag_good, flag_good, flag_good}).now.checkpoint);
  const Stamp saved{7, 10};
  CHECK(Divergence::on_trial(group.state.memory) == saved);
  CHECK(Divergence::good(group.state.memory).step == 0);
  group.round({flag_good, 0, 0});
  CHECK(Divergence::good(group.state.memory).step == 0);
  group.round({flag_good, flag_good, 0});
  CHECK(Divergence::good(group.state.memory) == saved);
  CHECK(Divergence::on_trial(group.state.memory).step == 0);
}

TEST_CASE("Divergence: one trial at a time, and one that nobody decides ends after many rows") {
  Group group;
  for (int i = 0; i < 10; ++i) group.round({0, 0, 0});
  CHECK(Divergence::on_trial(group.state.memory).step == 10);
  for (int i = 0; i < 90; ++i) group.round({0, 0, 0});
  CHECK(Divergence::on_trial(group.state.memory).step == 10);
  for (int i = 0; i < 20; ++i) group.round({0, 0, 0});
  CHECK(Divergence::on_trial(group.state.memory).step == 110);  // 30 000 rows after 10
}

TEST_CASE("Divergence: most of those that have rows decide, and the round is called off") {
  Group group;
  const Stamp good = group.saved_and_good();
  CHECK(group.round({bad, 0, 0}).now.retreat == Retreat::none);
  CHECK(group.round({bad, 0, 0}, 100, {100, 100, 0}).now.retreat == Retreat::none);
  CHECK(group.round({0, 0, 0}, 0).now.retreat == Retreat::none);
  CHECK(group.round({bad, flag_sound, flag_sound}, 100, {100, 0, 0}).now.retreat == Retreat::none);
  const auto alone = group.round({bad | flag_nonfinite, 0, 0}, 100, {0, 0, 0});
  CHECK(alone.now.retreat == Retreat::roll_back);  // no other device has rows
  Group other;
  const Stamp there = other.saved_and_good();
  const auto called = other.round({bad, bad, flag_good});
  CHECK(called.now.retreat == Retreat::roll_back);
  CHECK(called.now.mode == Mode::defer);
  CHECK_FALSE(called.now.checkpoint);
  CHECK(Stamp{called.now.back_lineage, called.now.back_step} == there);
  CHECK(good == there);
}

TEST_CASE("Divergence: while a device is in doubt checkpoints go on, and none is tried") {
  Group group(1);
  CHECK(group.round({bad, 0, 0}).now.checkpoint);
  CHECK(Divergence::on_trial(group.state.memory).step == 0);
  CHECK(group.round({0, flag_nonfinite, 0}).now.checkpoint);
  CHECK(Divergence::on_trial(group.state.memory).step == 2);
}

TEST_CASE("Divergence: a model that has trained much is not begun anew for want of a good checkpoint") {
  Group group(0);
  group.rows = 100'001;
  CHECK(group.round({bad, bad, bad}).now.retreat == Retreat::none);
  group.rows = 99'999;
  CHECK(group.round({bad, bad, bad}).now.retreat == Retreat::roll_back);
}

TEST_CASE("Divergence: without a good checkpoint it is the model as it began") {
  Group group;
  const auto called = group.round({bad, bad, bad});
  CHECK(called.now.retreat == Retreat::roll_back);
  CHECK(called.now.back_step == 0);
}

TEST_CASE("Divergence: a quarter of the rate each time, and after two times in vain all end") {
  Group group;
  group.saved_and_good();
  CHECK(group.round({0, 0, 0}).now.learning_rate_factor == 1);
  CHECK(group.round({bad, bad, bad}).now.retreat == Retreat::roll_back);
  CHECK(Divergence::tries(group.state.memory) == 1);
  group.enter(8);
  CHECK(group.state.last.now.learning_rate_factor == 0.25);
  CHECK(group.round({0, 0, 0}).now.learning_rate_factor == 0.25);
  CHECK(group.round({bad, bad, bad}).now.retreat == Retreat::roll_back);
  group.enter(9);
  CHECK(group.round({0, 0, 0}).now.learning_rate_factor == 0.0625);
  CHECK(group.round({bad, bad, bad}).now.retreat == Retreat::give_up);
}

TEST_CASE("Divergence: a good checkpoint behind it, and it has not been in vain") {
  Group group;
  group.saved_and_good();
  for (int i = 0; i < 5; ++i) {
    CHECK(group.round({bad, bad, bad}).now.retreat == Retreat::roll_back);
    group.enter(8 + static_cast<std::uint64_t>(i));
    group.saved_and_good();
    CHECK(Divergence::tries(group.state.memory) == 0);
  }
  CHECK(group.round({0, 0, 0}).now.learning_rate_factor == 1.0 / 256);  // the minimum
}

TEST_CASE("Divergence: what was on trial when the model diverged is not called good afterwards") {
  Group group;
  const Stamp good = group.saved_and_good();
  while (!group.round({0, 0, 0}).now.checkpoint) continue;
  CHECK(Divergence::on_trial(group.state.memory).step > good.step);
  group.round({bad, bad, bad});
  CHECK(Divergence::on_trial(group.state.memory).step == 0);
  group.enter(8);
  group.round({flag_good, flag_good, flag_good});
  CHECK(Divergence::good(group.state.memory) == good);
}

TEST_CASE("Divergence: in good health the rate comes back, a doubling for every 100 000 rows") {
  Group group;
  group.round({bad, bad, bad});
  group.enter(8);
  group.round({0, 0, 0}, 1000);
  for (int i = 0; i < 40; ++i) group.round({0, 0, 0}, 1000);
  CHECK(Divergence::learning_rate_factor(group.state.memory) == 0.25);  // no checkpoint is good yet
  group.saved_and_good();
  group.round({0, 0, 0}, 1000);
  CHECK(Divergence::learning_rate_factor(group.state.memory) == 0.5);
  for (int i = 0; i < 30; ++i) group.round({0, 0, 0}, 1000);
  CHECK(Divergence::learning_rate_factor(group.state.memory) == 0.5);
  for (int i = 0; i < 10; ++i) group.round({0, 0, 0}, 1000);
  CHECK(Divergence::learning_rate_factor(group.state.memory) == 1);
}

TEST_CASE(
    "Divergence: what a file or a peer says is known is not a number of steps or tries, and counts for "
    "nothing") {
  // tried, falls, good {lineage, step}, rows at change, trial {lineage, step}, rows of trial
  const std::vector<double> whole{1, 2, 7, 40, -1, 7, 50, 9000};
  Group kept;
  kept.state.memory = {{std::string(Divergence::name), whole}};
  kept.enter(8);
  CHECK(kept.state.memory.front().values == whole);
  constexpr double infinite = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<std::size_t, double>> wrong = {
      {0, 4},     {0, 0.5},          {1, 9},  {1, -1},    {2, -1}, {2, infinite},
      {3, 1e300}, {3, std::nan("")}, {4, -2}, {6, 0x1p54}};
  for (const auto& [place, value] : wrong) {
    CAPTURE(place);
    CAPTURE(value);
    Group group;
    group.state.memory = {{std::string(Divergence::name), whole}};
    group.state.memory.front().values[place] = value;
    CHECK(Divergence::learning_rate_factor(group.state.memory) == 1);
    group.enter(8);
    CHECK(group.state.memory.front().values == std::vector<double>(Divergence::numbers));
    const auto called = group.round({bad, bad, bad});
    CHECK(called.now.back_lineage == 0);
    CHECK(called.now.back_step == 0);
  }
}

TEST_CASE("Divergence: who leaves, and a group that ends, are not held up; and it can be switched off") {
  Group group;
  CHECK(group.round({bad, bad, bad | flag_leaving}).now.retreat == Retreat::none);
  CHECK(group.round({bad, bad, bad | flag_stop}).now.retreat == Retreat::none);
  CHECK(group.round({bad, bad, flag_dry_run}).now.retreat == Retreat::none);
  Group off;
  off.config.on_divergence = "ignore";
  off.state = {};
  off.enter(7);
  CHECK(off.state.memory.empty());
  CHECK(off.round({bad, bad, bad}).now.retreat == Retreat::none);
}
