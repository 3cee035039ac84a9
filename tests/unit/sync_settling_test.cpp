// Slow control loops take turns: a change settles before another controller makes one.
#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "sync/policy/arbiter.h"
#include "sync/policy/settling.h"
#include "tests/support/gated_group.h"
#include "tests/support/members.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;
using namespace rivulet::testing;

namespace {

/// Counts calls in its memory in which it did not have to wait: each is a change.
void change(const Inputs& inputs, std::span<double> memory, RoundPlan&) {
  if (!inputs.settling) memory[0] += 1;
}
double ten_rounds(const PolicyConfig&) {
  return 10;
}
ControllerEntry eager(Role role, std::string_view name) {
  return {.role = role,
          .name = name,
          .help = "test only",
          .propose = &change,
          .memory = 1,
          .slow = {&ten_rounds, 0}};
}
/// As eager, but changes only in the listed rounds.
std::vector<std::uint64_t> batch_rounds;
void change_then(const Inputs& inputs, std::span<double> memory, RoundPlan&) {
  const bool wants = std::ranges::find(batch_rounds, inputs.round) != batch_rounds.end();
  if (wants && !inputs.settling) memory[0] += 1;
}

/// A group of test-only controllers, round by round.
struct Loops {
  explicit Loops(Controllers all) : controllers(std::move(all)) {
    state = first_state(testing::members(3), config, controllers);
    table.facts.resize(3);
    table.sections.resize(3);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      table.facts[rank].rank = rank;
      table.facts[rank].rows = 10;
      table.facts[rank].rows_max = 100;
    }
  }
  /// Names of those that have changed something.
  std::vector<std::string> round() {
    const auto before = state.memory;
    why = plan(table, config, controllers, state).why;
    std::vector<std::string> changed;
    for (std::size_t i = 0; i < before.size(); ++i)
      if (before[i].name != Settling::name && before[i] != state.memory[i]) changed.push_back(before[i].name);
    return changed;
  }
  std::size_t rounds_until(const std::string& name, std::size_t most = 500) {
    std::size_t rounds = 1;
    while (rounds < most && std::ranges::count(round(), name) == 0) ++rounds;
    return rounds;
  }

  Controllers controllers;
  PolicyConfig config;
  PolicyState state;
  FactsTable table;
  std::string why;
};

constexpr std::size_t window = 20;

/// As testing::members(3), with a device in the place of another.
std::vector<std::string> other_members() {
  auto ids = testing::members(3);
  ids.back() += "-new";
  return ids;
}

}  // namespace

TEST_CASE("Settling: of loops that all want to change something one does, and then another when it settled") {
  const auto compression = eager(Role::compression, "a");
  const auto collective = eager(Role::collective, "b");
  Loops group({&compression, &collective});
  CHECK(group.round() == std::vector<std::string>{"compression/a"});
  CHECK(group.why.find("a has changed: other controllers wait for 20 rounds") != std::string::npos);
  // The controller of the last change may change again without waiting.
  for (std::size_t i = 0; i < window; ++i) CHECK(group.round() == std::vector<std::string>{"compression/a"});
}

TEST_CASE(
    "Settling: of loops that never settle each has a window of its own, one after the other, for ever") {
  const auto batch = eager(Role::batch, "a");
  const auto compression = eager(Role::compression, "b");
  const auto collective = eager(Role::collective, "c");
  for (const Controllers& loops :
       {Controllers{&compression, &collective}, Controllers{&batch, &compression, &collective}}) {
    Loops group(loops);
    std::map<std::string, std::size_t> turns;
    std::size_t waited = 0;
    std::size_t longest = 0;
    for (int i = 0; i < 3000; ++i) {
      const auto changed = group.round();
      REQUIRE(changed.size() == 1);  // one at a time
      ++turns[changed[0]];
      waited = changed[0] == "collective/c" ? 0 : waited + 1;
      longest = std::max(longest, waited);
    }
    CHECK(turns.size() == loops.size());
    for (const auto& [name, times] : turns) CHECK(times >= 3000 / (4 * loops.size() + 1) / 2);
    CHECK(longest <= 4 * window * (loops.size() + 1));
  }
}

TEST_CASE("Settling: views that follow each other at once, and a rate that falls again and again, end") {
  const auto batch = eager(Role::batch, "a");
  Loops group({&batch});
  group.round();
  std::size_t changes = 0;
  for (int i = 0; i < 1000; ++i) {
    if (i % 15 == 0)
      group.state = first_state(i % 2 == 0 ? testing::members(3) : other_members(), group.config,
                                group.controllers, group.state.memory);
    changes += group.round().size();
  }
  CHECK(changes > 100);
  CHECK(changes < 400);
}

TEST_CASE("Settling: rounds whose rows are used up and applied nowhere count") {
  const auto batch = eager(Role::batch, "a");
  Loops group({&batch});
  group.round();
  group.state = first_state(other_members(), group.config, group.controllers, group.state.memory);
  group.table.facts[0].flags = flag_dry_run;
  CHECK(group.rounds_until("batch/a") == window + 1);
}

TEST_CASE("Settling: a window is twice the longest half-life, in rounds that exchange something") {
  ControllerEntry batch = eager(Role::batch, "slow");
  batch.propose = &change_then;
  const auto collective = eager(Role::collective, "b");
  batch_rounds = {0};
  Loops group({&batch, &collective});
  CHECK(group.round() == std::vector<std::string>{"batch/slow"});
  for (std::size_t i = 1; i < window; ++i) {
    CAPTURE(i);
    CHECK(group.round().empty());
    for (Facts& f : group.table.facts) f.rows = 0;  // a round without rows does not count
    CHECK(group.round().empty());
    for (Facts& f : group.table.facts) f.rows = 10;
  }
  CHECK(group.round().empty());
  CHECK(group.round() == std::vector<std::string>{"collective/b"});
}

TEST_CASE("Settling: batches do not wait for how they are sent, and what follows waits for both") {
  ControllerEntry batch = eager(Role::batch, "slow");
  batch.propose = &change_then;
  const auto compression = eager(Role::compression, "a");
  batch_rounds = {5, 15};
  Loops group({&batch, &compression});
  for (int i = 0; i < 5; ++i) CHECK(group.round() == std::vector<std::string>{"compression/a"});
  CHECK(group.round() == std::vector<std::string>{"batch/slow"});
  for (int i = 6; i < 15; ++i) CHECK(group.round().empty());
  CHECK(group.round() == std::vector<std::string>{"batch/slow"});
  CHECK(group.rounds_until("compression/a") == window + 1);
}

TEST_CASE("Settling: a view of the last view's members interrupts nothing, nor one that nobody began") {
  const auto batch = eager(Role::batch, "a");
  Loops group({&batch});
  group.round();
  const auto memory = group.state.memory;
  group.state = first_state(testing::members(3), group.config, group.controllers, memory);
  CHECK(group.round() == std::vector<std::string>{"batch/a"});
  // A view of other members that ended before its first round left no memory.
  static_cast<void>(first_state(other_members(), group.config, group.controllers, memory));
  group.state = first_state(testing::members(3), group.config, group.controllers, memory);
  CHECK(group.round() == std::vector<std::string>{"batch/a"});
  // A device that is away for one view, and comes back: two changes.
  group.state = first_state(other_members(), group.config, group.controllers, group.state.memory);
  CHECK(group.rounds_until("batch/a") == window + 1);
  group.state = first_state(testing::members(3), group.config, group.controllers, group.state.memory);
  CHECK(group.rounds_until("batch/a") == window + 1);
}

TEST_CASE("Settling: other members, and a rate that has fallen, come before all loops") {
  const auto batch = eager(Role::batch, "a");
  Loops view({&batch});
  CHECK(view.round().size() == 1);
  const auto memory = view.state.memory;
  view.state = first_state(other_members(), view.config, view.controllers, memory);
  // From the view's first state, as in a replay.
  CHECK(first_state(other_members(), view.config, view.controllers, view.state.memory) == view.state);
  CHECK(view.rounds_until("batch/a") == window + 1);

  ControllerEntry rate = eager(Role::learning_rate, "r");
  rate.propose = &change_then;
  batch_rounds = {3};
  Loops falls({&batch, &rate});
  for (int i = 0; i < 3; ++i) CHECK(falls.round() == std::vector<std::string>{"batch/a"});
  falls.round();
  CHECK(falls.rounds_until("batch/a") == window + 1);
}

TEST_CASE("Settling: a group that has just begun waits for nothing, nor one without slow loops") {
  const auto batch = eager(Role::batch, "a");
  CHECK(Loops({&batch}).round().size() == 1);
  ControllerEntry fast = eager(Role::batch, "fast");
  fast.slow = {};
  Loops none({&fast});
  CHECK(none.state.memory.size() == 1);
  for (int i = 0; i < 30; ++i) CHECK(none.round() == std::vector<std::string>{"batch/fast"});
}

TEST_CASE("Settling: memory that anybody may have written holds nobody up for ever") {
  const auto batch = eager(Role::batch, "a");
  Rng rng(4);
  for (int i = 0; i < 300; ++i) {
    Loops group({&batch});
    const double strange[] = {1e300, -1e300, -1.0, 0.5, 3.0, 1e9, 5.0, 0.0};
    for (double& number : group.state.memory.back().values) number = strange[rng.below(std::size(strange))];
    CHECK(group.rounds_until("batch/a") < 10 * window);
  }
}

TEST_CASE(
    "Settling: every slow loop of this build moves by itself, and stays where it is when it is told to") {
  std::size_t loops = 0;
  for (const ControllerEntry* entry : builtin_controllers()) {
    Gated group("none", 3, 100'000);
    const std::string name(entry->name);
    if (entry->role == Role::batch) group.config.batch_policy = name;
    if (entry->role == Role::compression) group.config.compression_policy = name;
    if (entry->role == Role::collective) group.config.collective = name;
    group.settings.set("compression.gravac.window", std::int64_t{3});
    group.settings.set("batch.throughput.window", std::int64_t{2});
    group.config.settings = settings_of(group.config, group.settings);
    const std::size_t changes = entry->slow.changes_at;
    if (changes == SlowLoop::nowhere || entry->role == Role::learning_rate) continue;
    CAPTURE(name);
    CHECK(entry->slow.half_life(group.config) > 0);
    Rng rng(5);
    std::vector<double> memory(entry->memory + 3 * entry->memory_per_rank);
    Schedule entered{.rows = {10, 40, 70}, .way = {.collective = "gather"}, .gated = true};
    double asked = 0;
    const auto round = [&](bool settling, double level) {
      FactsTable table;
      table.facts.resize(3);
      table.sections.resize(3);
      for (Facts& f : table.facts) {
        f.rows = entered.rows[static_cast<std::size_t>(&f - table.facts.data())];
        f.rows_max = 1024;
        f.compute_seconds = static_cast<float>(0.1 * rng.uniform());
        f.sync_seconds = 0.1F;
        for (int i = 0; i < 40; ++i) f.measurements.push_back(static_cast<float>(level * rng.uniform()));
      }
      RoundPlan plan{.now = {.mode = Mode::gradients}, .next = entered};
      plan.next.way.payload_bytes = 100'000;
      entry->propose({table, group.config, entered, 0, 0, settling}, memory, plan);
      for (std::size_t i = 0; i < 3 && entry->role == Role::batch; ++i)
        if (plan.next.rows[i] > 0) entered.rows[i] = plan.next.rows[i];
      entered.way.collective = plan.next.way.collective;
      asked = memory[changes];
    };
    round(false, 1);
    CHECK(asked == 0);  // a first choice is not a change
    for (int i = 0; i < 300 && asked == 0; ++i) round(false, i / 20 % 2 == 0 ? 1 : 0.2);
    CHECK(asked == 1);
    const auto then = std::pair(memory, entered);
    for (int i = 0; i < 300; ++i) round(true, i / 50 % 2 == 0 ? 1 : 0.01);
    CHECK(asked == 1);
    std::tie(memory, entered) = then;
    for (int i = 0; i < 300; ++i) round(false, i / 50 % 2 == 0 ? 1 : 0.01);
    CHECK(asked > 1);
    ++loops;
  }
  CHECK(loops == 5);
}

TEST_CASE("Settling: GraVAC does not climb while a fallen learning rate settles, and does thereafter") {
  Gated group("gravac", 2, 1'000'000);
  group.settings.set("compression.gravac.window", std::int64_t{10});
  group.config.learning_rate_policy = "step";
  group.settings.set("train.lr_schedule.every_rows", std::int64_t{1000});
  constexpr std::size_t candidate = 2;
  const auto place = [&] {
    for (const ControllerMemory& own : group.state.memory)
      if (own.name == "compression/gravac") return own.values.at(candidate);
    return 0.0;
  };
  for (int i = 0; i < 9; ++i) group.step(flat(0.95));
  CHECK(place() == 1);
  group.agreed_rows = 1000;  // one more round and it would climb
  CHECK(group.step(flat(0.95)).why.find("step has changed") != std::string::npos);
  const double then = place();
  for (int i = 0; i < 20; ++i) {
    group.step(flat(0.95));
    CHECK(place() == then);
  }
  for (int i = 0; i < 10; ++i) group.step(flat(0.95));
  CHECK(place() == then + 1);
}

TEST_CASE(
    "Settling: a larger group's exchanges take longer, and moo chooses anew when its view has settled") {
  Gated small("moo", 4, 1'000'000);
  for (int i = 0; i < 40; ++i) {
    small.sent = i % 2 == 0 ? 1e5 : 1e6;
    small.sync_seconds = small.sent / 1e7;
    small.step(flat(0.9));
  }
  Gated large("moo", 16, 1'000'000);
  large.begin();
  large.state = first_state(testing::members(16), large.config, large.controllers, small.state.memory);
  large.sent = 1e6;
  large.sync_seconds = 0.1;
  constexpr std::size_t chosen_seconds = 14;
  const auto chosen = [&] { return large.state.memory.front().values.at(chosen_seconds); };
  const double before = chosen();
  CHECK(before > 0);
  large.step(flat(0.9));
  CHECK(chosen() == before);
  for (int i = 0; i < 10; ++i) large.step(flat(0.9));
  CHECK(chosen() > 1.5 * before);
}

TEST_CASE("Settling: SelSync's delta follows its target, but not while something else settles") {
  Gated group("none", 3, 1000);
  group.config.sync_policy = "selsync";
  group.settings.set("sync.selsync.target", 0.9);
  group.begin();
  const auto delta = [&] { return group.step(flat(0)).next.local.value().early.value().change; };
  const double first = delta();
  const double second = delta();
  CHECK(second != first);
  group.state = first_state(other_members(), group.config, group.controllers, group.state.memory);
  CHECK(delta() == second);  // other members: it waits
  CHECK(delta() == second);
}
