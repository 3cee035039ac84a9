// Budget of policy auto: overspent, underspent, and spent ahead.
#include <doctest/doctest.h>

#include "sync/controllers/sync_choice.h"
#include "tests/support/auto_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;
using namespace rivulet::testing;

namespace {

/// A tenth of a slow stream.
World tight() {
  World world;
  world.step_seconds = 0.1;
  world.record_bytes = 3'400;
  world.budget = "0.1 of stream";
  return world;
}

}  // namespace

TEST_CASE("Auto: what was sent beyond the budget is made up for") {
  Group group(tight());
  group.agree(10);
  group.forget_sums();
  group.agree(4);
  const double before = group.bytes_share();
  group.state().memory.front().values[balance_at] = -1e5;
  group.agree(1);
  group.forget_sums();
  group.agree(4);
  CHECK(group.bytes_share() < 0.8 * before);
}

TEST_CASE("Auto: what a hard budget did not use is not made up for beyond a few seconds of it") {
  Group group(tight());
  group.agree(20);
  group.state().memory.front().values[balance_at] = 1e9;
  group.agree(1);
  group.forget_sums();
  double seconds = 0;
  while (seconds < 60) seconds += 0.1 * group.agree().next.steps();
  CHECK(group.bytes_share() < 1.1 * 0.1);
}

TEST_CASE("Auto: of a budget that only steers five hundred rows are spent ahead, at first and once") {
  World world;
  world.step_seconds = 0.1;
  world.devices = 16;
  world.record_bytes = 6'000;
  world.in_common = 0;
  constexpr double ahead = 500 / 64.0 * 6'000;
  Group eager(world);
  Group even(world);
  const auto bytes_in = [](Group& group, double steps) {
    group.forget_sums();
    double made = 0;
    while (made < steps) made += group.agree().next.steps();
    return group.bytes_share() * made * 6'000;
  };
  eager.agree(1);
  even.agree(1);
  auto& memory = even.state().memory.front().values;
  CHECK(memory[ahead_at] > 0);
  memory[ahead_at] = 0;
  const double early = bytes_in(eager, 60) - bytes_in(even, 60);
  CHECK(early > 0.4 * ahead);
  CHECK(early < 1.3 * ahead);
  bytes_in(eager, 2000);
  bytes_in(even, 2000);
  CHECK(eager.state().memory.front().values[ahead_at] < 0.2);
  CHECK(bytes_in(eager, 2000) == doctest::Approx(bytes_in(even, 2000)).epsilon(0.03));

  world.in_common = 1;  // there, fewer synchronizations learn as much
  world.record_bytes = 1'000;
  Group alike(world);
  Group alike_even(world);
  alike.agree(5);
  alike_even.agree(5);
  alike.state().memory.front().values[ahead_at] = 1;
  alike_even.state().memory.front().values[ahead_at] = 0;
  CHECK(bytes_in(alike, 60) == doctest::Approx(bytes_in(alike_even, 60)));

  world.budget = "0.5 of stream";
  world.record_bytes = 30'000;
  Group hard(world);
  hard.agree(1);
  CHECK(hard.state().memory.front().values[ahead_at] == 0);
}

TEST_CASE("Auto: rounds in which nobody has rows are paid for, too") {
  Group group(tight());
  group.agree(20);
  double& balance = group.state().memory.front().values[balance_at];
  balance = 0;
  FactsTable idle = group.table();
  for (Facts& f : idle.facts) {
    f.rows = 0;
    f.measurements[0] = 0;
  }
  plan(idle, group.config(), group.controllers(), group.state());
  CHECK(balance < -500);
}
