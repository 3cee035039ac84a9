// sync.policy = "auto" after convergence (tests/support/auto_group.h).
#include <doctest/doctest.h>

#include <algorithm>

#include "sync/controllers/sync_choice.h"
#include "sync/policy/arbiter.h"
#include "tests/support/auto_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;
using namespace rivulet::testing;

namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

/// A fast link that affords all parameters, or every fourth step.
World learned() {
  World world;
  world.loss = 2;
  return world;
}

/// Its loss falls for some synchronizations, then stays.
void learn(Group& group) {
  for (int i = 0; i < 20; ++i) {
    group.world().loss *= 0.8;
    group.agree();
  }
}

constexpr const char* rests = "the loss no longer falls";

}  // namespace

TEST_CASE("Auto: where the loss no longer falls the group agrees more and more seldom, up to what is set") {
  Group group(learned());
  learn(group);
  CHECK(group.state().last.next.steps() == 4);
  CHECK_FALSE(contains(group.state().last.why, rests));
  std::uint32_t last = 4;
  int changes = 0;
  for (int i = 0; i < 120; ++i) {
    const std::uint32_t steps = group.agree().next.steps();
    CHECK(steps >= last);
    CHECK(steps <= 2 * last);
    changes += steps != last ? 1 : 0;
    last = steps;
  }
  CHECK(last == 32);
  CHECK(changes == 3);
  CHECK_MESSAGE(contains(group.state().last.why, rests), group.state().last.why);
  World short_of_it = learned();
  short_of_it.local_steps_max = 8;
  Group other(short_of_it);
  learn(other);
  CHECK(other.agree(120).next.steps() == 8);
}

TEST_CASE("Auto: while the loss falls nothing rests") {
  World world = learned();
  world.loss_falls = 0.995;  // 4 % in 4 096 rows
  Group group(world);
  for (int i = 0; i < 300; ++i) REQUIRE(group.agree().next.steps() == 4);
}

TEST_CASE("Auto: where the loss no longer falls what is sent gets no denser, and not all is sent") {
  World world = learned();
  world.tensors = {7'850};
  world.record_bytes = 200e3;
  world.step_seconds = 0.2;
  Group group(world);
  learn(group);
  REQUIRE(group.state().last.next.way.keep_ratio == 1);
  group.agree(400);
  CHECK(contains(group.state().last.why, rests));
  CHECK(group.state().last.next.way.keep_ratio <= 0.05);
  CHECK(group.state().last.next.steps() == 32);
  World slow = learned();
  slow.bytes_per_second = 12'500;
  slow.step_seconds = 0.006;
  Group few(slow);
  learn(few);
  const double keep = few.state().last.next.way.keep_ratio;
  REQUIRE(keep < 0.02);
  few.agree(60);
  few.world().bytes_per_second = 1e9;
  for (int i = 0; i < 60; ++i) {
    const RoundPlan& plan = few.agree();
    REQUIRE_MESSAGE(contains(plan.why, rests), plan.why);
    REQUIRE(plan.next.way.keep_ratio <= keep);
  }
}

TEST_CASE("Auto: a stream that has changed is agreed on as before, at once, and so is a loss that rises") {
  for (const bool flagged : {true, false}) {
    Group group(learned());
    learn(group);
    REQUIRE(group.agree(120).next.steps() == 32);
    group.world().loss = flagged ? 0.03 : 1;
    if (flagged) {
      FactsTable table = group.table();
      table.facts[1].flags |= flag_changed;
      plan(table, group.config(), group.controllers(), group.state());
    } else {
      group.agree();
    }
    CAPTURE(flagged);
    CHECK(group.state().last.next.steps() <= 4);
    CHECK_FALSE(contains(group.state().last.why, rests));
  }
}

TEST_CASE("Auto: a small loss that jumps by chance ends no rest") {
  World world = learned();
  Group group(world);
  learn(group);
  group.world().loss = 0.001;
  REQUIRE(group.agree(200).next.steps() == 32);
  group.world().loss = 0.006;
  CHECK(group.agree().next.steps() == 32);
}

TEST_CASE("Auto: movements within their noise are no streams that differ, and it is said") {
  World world = learned();
  world.in_common = 0;
  world.signal_spread = 1;  // without signal
  world.signal = 0;
  Group group(world);
  learn(group);
  int differ = 0;
  for (int i = 0; i < 500; ++i) {
    const RoundPlan& plan = group.agree();
    differ += contains(plan.why, "streams differ") ? 1 : 0;
  }
  CHECK(differ < 10);
  CHECK_MESSAGE(contains(group.state().last.why, "deltas do not exceed their noise"), group.state().last.why);
  CHECK(group.state().last.next.steps() == 32);
}

TEST_CASE("Auto: streams that differ are agreed on after each step, also where the loss no longer falls") {
  World world = learned();
  world.in_common = 0;
  world.signal = 10;
  Group group(world);
  learn(group);
  for (int i = 0; i < 400; ++i) {
    group.state().last.next.local = LocalSchedule{.steps = 2};  // single steps make no pairs in this world
    REQUIRE(group.agree().next.steps() == 1);
  }
  CHECK(contains(group.state().last.why, "streams differ"));
  CHECK_FALSE(contains(group.state().last.why, rests));
}

TEST_CASE("Auto: streams that have nothing in common at all are known to differ") {
  World world = learned();
  world.loss_falls = 0.98;
  Group group(world);
  group.agree(4);
  auto& memory = group.state().memory.front().values;
  memory[alike_at] = 0;
  memory[alike_variance_at] = 0.01;
  memory[steps_at] = 16;
  memory[most_at] = 32;
  FactsTable silent = group.table();
  for (Facts& f : silent.facts) std::fill(f.measurements.begin() + 5, f.measurements.end(), 0.0F);
  plan(silent, group.config(), group.controllers(), group.state());
  CHECK_MESSAGE(contains(group.state().last.why, "streams differ (0 %)"), group.state().last.why);
  CHECK(memory[most_at] == 4);
}

TEST_CASE("Auto: a tiny model is agreed on as a whole, as seldom as others: facts cost more than it does") {
  World world = learned();
  world.tensors = {40, 10};
  world.record_bytes = 20'000;
  Group tiny(world);
  learn(tiny);
  CHECK(tiny.state().last.next.way.compressor == "dense");
  CHECK(tiny.state().last.next.local);
  CHECK(tiny.state().last.next.steps() == 4);
  world.tensors = {80, 10};
  Group small(world);
  learn(small);
  CHECK(small.state().last.next.steps() == 1);  // it has the bytes
}
