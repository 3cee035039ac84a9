// sync.policy = "auto": its plans for measured devices (tests/support/auto_group.h).
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/rng.h"
#include "sync/coding/sketch.h"
#include "sync/controllers/budget.h"
#include "sync/controllers/sync_choice.h"
#include "sync/policy/arbiter.h"
#include "sync/policy/coherence.h"
#include "sync/policy/sync_cost.h"
#include "tests/support/auto_group.h"
#include "tests/support/members.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;
using namespace rivulet::testing;

namespace {

bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("Auto: steps go on while the group agrees where that takes long, and are as many as without") {
  World world;
  world.latency = 0.2;  // twenty steps
  Group waiting(world);
  world.overlap = true;
  Group going_on(world);
  const RoundPlan waits = waiting.agree(40);
  const RoundPlan& plan = going_on.agree(40);
  CHECK(!waits.next.overlaps());
  CHECK(plan.next.overlaps());
  CHECK(plan.next.steps() == waits.next.steps());
  CHECK(plan.next.way.keep_ratio == waits.next.way.keep_ratio);
  CHECK_MESSAGE(contains(plan.why, "overlapped with local steps"), plan.why);
  world.latency = 0.001;
  Group fast(world);
  CHECK(!fast.agree(40).next.overlaps());
}

TEST_CASE("Auto: steps do not go on while the group agrees as long as the loss falls fast") {
  World world;
  world.latency = 0.2;
  world.overlap = true;
  world.loss = 2;
  Group group(world);
  for (int i = 0; i < 12; ++i) {
    group.world().loss *= 0.7;
    CHECK(!group.agree().next.overlaps());
  }
  CHECK(group.agree(12).next.overlaps());
}

TEST_CASE("Auto: few bytes go with the facts, and what is larger goes to the owners of slices") {
  World world;
  world.devices = 4;
  world.bytes_per_second = 100e3;
  Group much(world);
  CHECK(much.agree(20).next.way.collective == "two_sided");
  world.tensors = {6'000, 100};
  Group little(world);
  CHECK(little.agree(20).next.way.collective == "gather");
  const auto unseen = [](Group& group) { return unseen_bytes(way_of(group.config(), 4, "topk", 0.05), 4); };
  CHECK(unseen(much) == doctest::Approx(3 * unseen(little)));
}

TEST_CASE("Auto: before anything is known little is sent, on any link, and devices step apart") {
  Group group({});
  const Schedule& first = group.state().last.next;
  CHECK(first.way.compressor == "topk");
  CHECK(first.way.payload_bytes < 4'000);
  CHECK(first.steps() == 1);  // all enter immediately: rates are not known yet
  CHECK(group.agree().next.local);
}

TEST_CASE("Auto: a device alone has nobody to agree with, and steps as it would with policy every") {
  World world;
  world.devices = 1;
  Group group(world);
  for (int i = 0; i < 10; ++i) {
    const auto& next = group.agree().next;
    CHECK_FALSE(next.local);
    CHECK(next.steps() == 1);
    CHECK(next.way.compressor == "dense");
  }
}

TEST_CASE("Auto: a fast link is used: many agreements, on more than a slow one allows") {
  World fast;
  World slow;
  slow.bytes_per_second = 12'500;
  Group a(fast), b(slow);
  const auto quick = a.agree(40).next;
  const auto patient = b.agree(40).next;
  CHECK(quick.steps() <= 4);
  CHECK(quick.way.keep_ratio >= 0.05);
  CHECK(patient.steps() >= 16);
  CHECK(patient.steps() <= 32);
  b.forget_sums();
  b.agree(20);
  a.world().bytes_per_second = slow.bytes_per_second;  // the amount of the fast one, on the slow link
  a.forget_sums();
  a.agree();
  CHECK(b.time_share() < a.time_share() - 0.2);
}

TEST_CASE("Auto: on a link that can carry it, agreements take a twentieth of the time") {
  for (const double rate : {1.25e6, 400e3}) {
    World world;
    world.bytes_per_second = rate;
    world.loss_falls = 0.98;
    Group group(world);
    group.agree(40);
    group.forget_sums();
    group.agree(40);
    CAPTURE(rate);
    CAPTURE(group.state().last.why);
    CHECK(group.time_share() < 0.08);
    CHECK((group.time_share() > 0.03 || group.state().last.next.steps() <= 4));  // and no fewer than needed
  }
}

TEST_CASE("Auto: streams that differ are few steps apart while devices see copies of others' rows, not one") {
  World world;
  world.in_common = 0;
  world.tensors = {600'000};
  Group alone(world);
  CHECK(alone.agree(40).next.steps() == 1);
  Group helped(world);
  for (int i = 0; i < 40; ++i) {
    helped.state().last.next.injection = Injection{{}, 1.0 / 3};
    helped.agree();
  }
  CHECK(helped.state().last.next.steps() == 4);
  CHECK(helped.state().last.next.local);
}

TEST_CASE("Auto: all parameters are sent after each step where rows weigh more and the link has the time") {
  World world;
  world.tensors = {7'850};
  world.record_bytes = 200e3;
  world.step_seconds = 0.2;
  Group group(world);
  const auto next = group.agree(30).next;
  CHECK(next.steps() == 1);
  CHECK(next.way.keep_ratio == 1);
  CHECK(next.way.compressor == "dense");
  CHECK(next.way.payload_bytes == 4 * 7'850);
  CHECK(contains(group.state().last.why, "synchronize every step, all parameters"));
}

TEST_CASE("Auto: a budget holds, headers and facts included, also a small one, and nothing is left of it") {
  for (const char* budget : {"0.1 of stream", "0.02 of stream", "6 kB/s"}) {
    World world;
    world.step_seconds = 0.1;
    world.record_bytes = 3'400;
    world.budget = budget;
    Group group(world);
    double share = budget_of(budget)->of_stream;
    if (share == 0) share = 6e3 * 0.1 / 3'400;
    group.agree(20);
    group.forget_sums();
    group.agree(60);
    CAPTURE(budget);
    CAPTURE(group.state().last.why);
    CHECK(group.bytes_share() < 1.02 * share);
    CHECK(group.bytes_share() > 0.5 * share);
  }
}

TEST_CASE("Auto: streams that clearly differ are agreed on after each step at once, on a slow link, too") {
  World world;
  world.bytes_per_second = 12'500;
  world.in_common = 0;
  world.signal = 20;
  Group group(world);
  CHECK(group.agree(2).next.steps() <= 4);
  CHECK(group.agree(3).next.steps() == 1);
  CHECK(group.state().last.next.way.keep_ratio <= 0.02);  // gradients need no more
}

TEST_CASE("Auto: of streams that differ thin matrices of gradients are summed where budget and link allow") {
  World world;
  world.in_common = 0;
  world.signal = 10;
  world.tensor_rows = {200, 1};
  const auto compressor = [](const World& of) {
    Group group(of);
    const auto& plan = group.agree(20);
    CHECK_FALSE(plan.next.local);
    CHECK((plan.next.way.compressor == "low_rank") == (plan.next.way.collective == "low_rank"));
    CHECK((plan.next.way.compressor == "low_rank") == contains(plan.why, "low rank"));
    return plan.next.way.compressor;
  };
  CHECK(compressor(world) == "low_rank");
  World slow = world;
  slow.bytes_per_second = 12'500;
  CHECK(compressor(slow) == "topk");
  World frugal = world;
  frugal.budget = "0.2 of stream";
  CHECK(compressor(frugal) == "topk");
  World alike = world;
  alike.in_common = 1;
  Group group(alike);
  CHECK(group.agree(20).next.way.compressor == "topk");
}

TEST_CASE("Auto: where movements are all noise, nothing is known of the streams, and nothing is changed") {
  World world;
  world.bytes_per_second = 12'500;
  world.in_common = 0;
  world.signal = 0.01;
  Group group(world);
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    group.agree();
    if (i > 10) REQUIRE(group.state().last.next.steps() == 32);
  }
}

TEST_CASE(
    "Auto: streams that differ are agreed on after each step; said in words, and forgotten when they do "
    "not") {
  World world;
  world.bytes_per_second = 2e6;
  world.in_common = 0;
  world.signal = 10;
  Group group(world);
  const auto apart = group.agree(20);
  CAPTURE(apart.why);
  CHECK(apart.next.steps() == 1);
  CHECK_FALSE(apart.next.local);  // local momentum would make the models drift apart
  CHECK(contains(apart.why, "streams differ"));
  // Single steps make no pairs in this world; the next measurement of the streams is good.
  group.world().in_common = 1;
  group.state().last.next.local = LocalSchedule{.steps = 2};
  group.agree();
  for (int i = 0; i < 40; ++i) {
    if (group.state().last.next.steps() == 1) group.state().last.next.local = LocalSchedule{.steps = 2};
    group.agree();
  }
  CHECK(group.state().last.next.steps() > 2);
  CHECK(contains(group.state().last.why, "streams are alike"));
}

TEST_CASE(
    "Auto: own steps become more by and by while streams are alike, and half at once when the loss jumps") {
  World world;
  world.bytes_per_second = 1'000;
  world.local_steps_max = 256;
  Group group(world);
  CHECK(group.agree(3).next.steps() <= 32);
  const std::uint32_t before = group.agree(40).next.steps();
  CHECK(before > 64);
  group.world().loss = 2;
  const std::uint32_t after = group.agree().next.steps();
  CHECK(after <= before / 2 + 1);
  group.world().loss = 1;
  CHECK(group.agree(4).next.steps() <= before / 2 + 1);  // not immediately again
}

TEST_CASE("Auto: a small loss jumps by chance, which says nothing; one that has gone too far jumps further") {
  World world;
  world.bytes_per_second = 20'000;
  world.loss = 0.02;
  world.loss_spread = 2;
  Group group(world);
  group.agree(20);
  for (int i = 0; i < 300; ++i) {
    CAPTURE(i);
    REQUIRE(group.agree().next.steps() >= 16);
  }
  group.world().loss = 2;
  CHECK(group.agree().next.steps() <= 16);
}

TEST_CASE(
    "Auto: devices that compute and wait for the last one agree less often; who waits for rows does not") {
  World busy;
  busy.late_seconds = 0.01;
  busy.compute_seconds = busy.step_seconds;
  World idle = busy;
  idle.compute_seconds = 0;
  Group a(busy), b(idle);
  CHECK(a.agree(40).next.steps() >= 8);
  CHECK(b.agree(40).next.steps() <= 4);
}

TEST_CASE("Auto: of a large model a smaller share is sent before devices have lost half of their speed") {
  World world;
  world.tensors = {1'000'000};
  world.record_bytes = 500e3;
  world.bytes_per_second = 200e3;
  Group group(world);
  const auto next = group.agree(60).next;
  CAPTURE(group.state().last.why);
  CHECK(next.steps() == 32);
  CHECK(next.way.keep_ratio <= 0.02);
  CHECK(next.way.keep_ratio >= 0.01);
}

TEST_CASE("Auto: where own steps are too few for the link, a smaller share is sent") {
  World world;
  world.bytes_per_second = 12'500;
  world.step_seconds = 0.006;
  Group group(world);
  const auto next = group.agree(40).next;
  CHECK(next.steps() == 32);
  CHECK(next.way.keep_ratio < 0.02);
  group.forget_sums();
  group.agree(20);
  CHECK(group.time_share() < 0.65);
}

TEST_CASE(
    "Auto: what it goes by is shown: how alike the streams are, what an exchange takes and should take") {
  World world;
  world.bytes_per_second = 100'000;
  world.latency = 0.02;
  world.late_seconds = 0.01;
  world.compute_seconds = world.step_seconds;
  Group group(world);
  group.agree(60);
  const ControllerEntry& self = *group.controllers().front();
  REQUIRE(name_of(self) == "when/auto");
  const auto shown = [&](std::string_view name) {
    for (const Figure& figure : self.figures)
      if (figure.name == name) return memory_of(group.state(), self)->at(figure.place);
    return -1.0;
  };
  CHECK(shown("coherence") > 0.8);
  const double takes = group.last_exchange();
  CHECK(shown("exchange_seconds") / takes == doctest::Approx(1).epsilon(0.05));
  CHECK(shown("expected_exchange_seconds") / takes == doctest::Approx(1).epsilon(0.1));
  CHECK(shown("wait_seconds") / 0.0075 == doctest::Approx(1).epsilon(0.1));  // three of four devices wait
}

TEST_CASE("Auto: a loss that falls fast is not noise: the jump behind it is seen") {
  World world;
  world.bytes_per_second = 20'000;
  world.loss = 2.3;
  Group group(world);
  group.agree(10);
  const std::uint32_t before = group.state().last.next.steps();
  REQUIRE(before >= 8);
  for (const double loss : {1.2, 0.6, 0.4, 0.4, 0.4, 0.4}) {
    group.world().loss = loss;
    group.agree();
  }
  group.world().loss = 1.2;
  CHECK(group.agree().next.steps() <= before / 2 + 1);
}

TEST_CASE("Auto: losses beyond all numbers do not stay in its memory") {
  World world;
  world.bytes_per_second = 20'000;
  Group group(world);
  group.agree(10);
  for (const double sign : {1.0, -1.0, 1.0, -1.0}) {
    FactsTable table = group.table();
    for (Facts& f : table.facts) {
      f.rows = 1;
      f.loss_sum = sign * std::numeric_limits<double>::max();
    }
    plan(table, group.config(), group.controllers(), group.state());
    for (const double value : group.state().memory.front().values) CHECK(std::isfinite(value));
  }
  group.agree(60);
  CHECK(group.state().last.next.steps() >= 16);
}

TEST_CASE("Auto: numbers that no device should send leave a plan that devices can follow") {
  Rng rng(9);
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                       std::numeric_limits<float>::infinity(),
                       -1e38F,
                       1e38F,
                       0.0F,
                       -0.0F,
                       1e-38F};
  Group group({});
  for (int round = 0; round < 500; ++round) {
    group.agree();
    PolicyState state = group.state();
    FactsTable table = group.table();
    for (Facts& f : table.facts) {
      for (float& x : f.measurements)
        if (rng.below(3) == 0) x = odd[rng.below(std::size(odd))];
      if (rng.below(4) == 0) f.rows = 0;
      if (rng.below(4) == 0) f.loss_sum = odd[rng.below(std::size(odd))];
    }
    PolicyState same = state;
    const auto out = plan(table, group.config(), group.controllers(), state);
    CHECK(out == plan(table, group.config(), group.controllers(), same));
    CHECK(out.next.steps() >= 1);
    CHECK(out.next.steps() <= 8000);
    CHECK(out.next.way.keep_ratio > 0);
    CHECK(out.next.way.keep_ratio <= 1);
    for (const double value : state.memory.front().values) CHECK(std::isfinite(value));
  }
}

TEST_CASE(
    "Auto: settings and memory that somebody else has written are refused, or lead to plans that can be "
    "followed") {
  Group group({});
  group.agree(5);
  REQUIRE(check_policy(group.config(), group.controllers(), group.state()));
  PolicyConfig strange = group.config();
  for (PolicySetting& setting : strange.settings)
    if (setting.name == "sync.budget") setting.text = "all of it";
  CHECK_FALSE(check_policy(strange, group.controllers(), group.state()));
  PolicyState state = group.state();
  state.memory.front().values.back() = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(check_policy(group.config(), group.controllers(), state));
  Rng rng(11);
  for (int i = 0; i < 2000; ++i) {
    state = group.state();
    for (double& value : state.memory.front().values)
      if (rng.below(2) == 0)
        value = (rng.uniform() - 0.5) * std::pow(10.0, static_cast<double>(rng.below(600)) - 300);
    const auto out = plan(group.table(), group.config(), group.controllers(), state);
    CHECK(out.next.steps() >= 1);
    CHECK(out.next.steps() <= 8000);
    CHECK(out.next.way.keep_ratio > 0);
    CHECK(out.next.way.keep_ratio <= 1);
  }
}

TEST_CASE("Auto: of its two controllers each may go with another one") {
  World world;
  Group both(world);
  PolicyConfig config = both.config();
  SUBCASE("own steps alone follow what is measured, the share is given") {
    config.compression_policy = "fixed";
    Settings settings = runtime::Config::default_settings();
    settings.set("compression.compressor", std::string("topk"));
    settings.set("compression.keep", 0.02);
    config.settings = settings_of(config, settings);
    const auto all = controllers_of(config, builtin_controllers()).value();
    auto state = first_state(testing::members(4), config, all);
    CHECK(state.last.next.way.keep_ratio == 0.02);
    CHECK(exchanges_deltas(config, builtin_controllers()));
  }
  SUBCASE("without it nothing is left out") {
    config.sync_policy = "every";
    config.settings = settings_of(config, runtime::Config::default_settings());
    const auto all = controllers_of(config, builtin_controllers()).value();
    CHECK(first_state(testing::members(4), config, all).last.next.way.compressor == "dense");
    CHECK_FALSE(exchanges_deltas(config, builtin_controllers()));
  }
}

TEST_CASE("Budget: shares and rates in the units that people write, and nothing else") {
  CHECK(budget_of("1 of stream") == Budget{.of_stream = 1});
  CHECK(budget_of("0.1 of stream") == Budget{.of_stream = 0.1});
  CHECK(budget_of("50 kB/s") == Budget{.bytes_per_second = 50e3});
  CHECK(budget_of("50kB/s") == Budget{.bytes_per_second = 50e3});
  CHECK(budget_of("6 MB/minute") == Budget{.bytes_per_second = 100e3});
  CHECK(budget_of("2.592 TB/month") == Budget{.bytes_per_second = 1e6});
  for (const char* wrong :
       {"", "0 of stream", "-1 of stream", "nan of stream", "inf kB/s", "1", "1 stream", "50 kB", "50 kb/s",
        "50 kB/fortnight", "of stream", "1  of stream", "1 of stream ", "1e308 GB/s", "1e-320 B/month"})
    CHECK_FALSE(budget_of(wrong));
}

TEST_CASE("Cost: a line through what was measured, once two sizes were, and half of the time before that") {
  std::vector<double> memory(LinearFit::numbers);
  LinearFit fit(memory);
  CHECK(fit.seconds(1000) == 0);
  fit.add(10'000, 0.1);
  CHECK(fit.seconds(10'000) == doctest::Approx(0.1));
  CHECK(fit.seconds(5'000) == doctest::Approx(0.075));
  for (int i = 0; i < 40; ++i) {
    fit.add(10'000, 0.02 + 10'000 * 1e-5);
    fit.add(2'000, 0.02 + 2'000 * 1e-5);
  }
  CHECK(fit.seconds(10'000) == doctest::Approx(0.12).epsilon(0.06));
  CHECK(fit.seconds(2'000) == doctest::Approx(0.04).epsilon(0.1));
  CHECK(fit.seconds(1e12) >= fit.seconds(1e6));
  CHECK(fit.seconds(0) >= 0);
}

TEST_CASE(
    "Sketch: inner products and norms are nearly those of the vectors, also folded, and sums are sketched") {
  Rng rng(2);
  for (const std::size_t count : {1U, 1000U, 1024U, 61'706U}) {
    std::vector<float> a(count), b(count);
    double aa = 0, ab = 0;
    for (std::size_t i = 0; i < count; ++i) {
      // A few elements carry most of a gradient.
      a[i] = static_cast<float>(rng.normal() * (i % 97 == 0 ? 10 : 0.1));
      b[i] = static_cast<float>(0.5 * a[i] + rng.normal() * 0.3);
      aa += double{a[i]} * a[i];
      ab += double{a[i]} * b[i];
    }
    const auto view = [](std::vector<float>& v) {
      return GradientView{reinterpret_cast<std::byte*>(v.data()), v.size()};
    };
    Sketch sa, sb, both;
    sa.add(view(a));
    sb.add(view(b));
    both.add(view(a));
    both.add(view(b));
    CAPTURE(count);
    CHECK(inner_product(sa, sa) == doctest::Approx(aa).epsilon(0.15));
    CHECK(inner_product(sa, sb) == doctest::Approx(ab).epsilon(0.3));
    CHECK(inner_product(both, both) ==
          doctest::Approx(inner_product(sa, sa) + 2 * inner_product(sa, sb) + inner_product(sb, sb))
              .epsilon(1e-4));
    double folded = 0;
    for (const float x : sa.folded()) folded += double{x} * x;
    CHECK(folded == doctest::Approx(aa).epsilon(0.8));
    std::vector<double> wide(a.begin(), a.end());
    Sketch same;
    same.add({reinterpret_cast<std::byte*>(wide.data()), wide.size(), Scalar::f64});
    CHECK(same.sums == sa.sums);
  }
}
