// Interactions of policies: an action of one must not mislead another.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "runtime/config/config.h"
#include "sync/controllers/skew.h"
#include "sync/policy/arbiter.h"
#include "sync/policy/sync_cost.h"
#include "tests/support/gated_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;
using namespace rivulet::testing;

namespace {

constexpr const char* gates[] = {"two-point", "gravac", "moo"};

const std::vector<double>& memory_of(const Gated& group) {
  return group.state.memory.front().values;
}

/// Indices in the memory of gravac and moo.
constexpr std::size_t gravac_settled = 3;
constexpr std::size_t gravac_sent = 4;
constexpr std::size_t gravac_tries = 17;
constexpr std::size_t moo_chosen_seconds = 14;

double tries_of(const Gated& group) {
  double sum = 0;
  for (std::size_t i = 0; i < 5; ++i) sum += memory_of(group).at(gravac_tries + i);
  return sum;
}

Gated climbing() {
  Gated group("gravac", 2, 1'000'000);
  group.settings.set("compression.gravac.window", std::int64_t{30});
  return group;
}

/// Reverts what a proposal of one role may change.
void take_back(Role role, const RoundPlan& before, RoundPlan& plan) {
  plan.why = before.why;
  switch (role) {
    case Role::when:
      plan.now.mode = before.now.mode;
      plan.next.local = before.next.local;
      plan.next.way.keep_ratio =
          before.next.way.keep_ratio;  // auto decides it; the compression policy follows
      return;
    case Role::batch:
      plan.now.mode = before.now.mode;
      plan.next.rows = before.next.rows;
      plan.next.wait = before.next.wait;
      plan.next.whole = before.next.whole;
      plan.next.rest = before.next.rest;
      return;
    case Role::transfer:
      plan.next.injection = before.next.injection;
      plan.next.rows = before.next.rows;  // injected rows count within a batch
      return;
    case Role::compression:
      plan.now.way = before.now.way;
      plan.next.way.compressor = before.next.way.compressor;
      plan.next.way.keep_ratio = before.next.way.keep_ratio;
      plan.next.way.payload_bytes = before.next.way.payload_bytes;
      plan.next.gated = before.next.gated;
      return;
    case Role::collective: plan.next.way.collective = before.next.way.collective; return;
    case Role::learning_rate: plan.now.learning_rate_factor = before.now.learning_rate_factor; return;
  }
}

/// Facts that trigger controllers: devices differ in all measurements.
FactsTable busy_table(std::size_t measurements) {
  FactsTable table;
  table.facts.resize(3);
  table.sections.resize(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    Facts& f = table.facts[rank];
    f.rank = rank;
    f.rows = 10 + 30 * rank;
    f.rows_max = 1024;
    f.queue_rows = 2000 * rank;
    f.stream_rate = 100.0F + 500.0F * static_cast<float>(rank);
    f.compute_seconds = 0.01F * static_cast<float>(1 + rank);
    f.sync_seconds = 0.1F;
    f.loss_sum = 2.0 * f.rows;
    f.agreed_rows = 5000;
    f.measurements.assign(measurements, 0.3F + 0.2F * static_cast<float>(rank));
  }
  return table;
}

PolicyConfig config_with(const ControllerEntry& entry) {
  Gated all("none", 3, 10'000);  // has every key's default
  all.config.collective = "gather";
  const std::string name(entry.name);
  if (entry.role == Role::when) all.config.sync_policy = name;
  if (entry.role == Role::batch) all.config.batch_policy = name;
  if (entry.role == Role::transfer) all.config.transfer_policy = name;
  if (entry.role == Role::compression) all.config.compression_policy = name;
  if (entry.role == Role::collective) all.config.collective = name;
  if (entry.role == Role::learning_rate) all.config.learning_rate_policy = name;
  if (name == "auto" && entry.role == Role::transfer) all.config.sync_policy = "auto";
  all.config.settings = settings_of(all.config, all.settings);
  return all.config;
}

}  // namespace

TEST_CASE("Rulings: each controller changes what its role owns, and nothing else") {
  for (const ControllerEntry* entry : builtin_controllers()) {
    const std::string name = name_of(*entry);
    CAPTURE(name);
    const PolicyConfig config = config_with(*entry);
    std::size_t measurements = 0;
    for (const FactField& field : entry->fact_fields) measurements += field.count;
    const FactsTable table = busy_table(measurements);
    std::vector<double> memory(entry->memory + 3 * entry->memory_per_rank);
    Schedule entered{.rows = {10, 40, 70}, .way = {.collective = "gather"}, .gated = true};
    RoundPlan before{.now = {.mode = Mode::gradients, .weights = {0.1, 0.3, 0.6}}, .next = entered};
    before.next.local.emplace();
    before.next.way.payload_bytes = config.contribution_bytes;
    for (int i = 0; i < 40; ++i) {
      RoundPlan after = before;
      entry->propose({table, config, entered, static_cast<std::uint64_t>(i), 0}, memory, after);
      take_back(entry->role, before, after);
      REQUIRE(after == before);
    }
  }
}

TEST_CASE("Rulings: gates learn of rounds that are exchanged, once, and nothing of those that are held") {
  for (const char* policy : gates) {
    CAPTURE(policy);
    Gated group(policy, 3, 10'000);
    for (int i = 0; i < 5; ++i) group.step(flat(0.9));
    auto known = memory_of(group);
    if (policy == std::string("gravac"))
      known.at(gravac_sent) = 0;  // the next round does not follow an exchange
    group.flags = flag_incomplete;
    const RoundPlan held = group.step(flat(0.1));
    REQUIRE(held.now.mode == Mode::defer);
    CHECK(memory_of(group) == known);
    group.flags = 0;
    group.step(flat(0.9));
    CHECK(memory_of(group) != known);
  }
}

TEST_CASE("Rulings: a batch of another size begins the averages of the gates anew") {
  for (const char* policy : {"two-point", "gravac"}) {
    CAPTURE(policy);
    Gated group(policy, 2, 1'000'000);
    for (int i = 0; i < 30; ++i) group.step(flat(0.2));
    CHECK(group.step(flat(0.95)).now.way.value().compressor == "dense");  // one round has little weight
    group.rows = 80;                                                      // nor does a slightly larger batch
    CHECK(group.step(flat(0.95)).now.way.value().compressor == "dense");
    group.rows = 256;
    CHECK(group.step(flat(0.95)).now.way.value().compressor == "topk");
    group.rows = 64;
    CHECK(group.step(flat(0.2)).now.way.value().compressor == "dense");
  }
  Gated moo("moo", 2, 1'000'000);
  moo.settings.set("compression.moo.epsilon", 0.7);
  for (int i = 0; i < 30; ++i) moo.step(flat(0.2));
  CHECK(moo.step(flat(0.95)).now.way.value().compressor == "dense");
  moo.rows = 256;
  CHECK(moo.step(flat(0.95)).now.way.value().compressor == "topk");
}

TEST_CASE("Rulings: of own steps, whose number changes, the rows of one count") {
  Gated group("two-point", 2, 1'000'000);
  for (int i = 0; i < 30; ++i) group.step(flat(0.2));
  group.rows = 4 * 64;
  group.steps = 4;
  CHECK(group.step(flat(0.95)).now.way.value().compressor == "dense");
}

TEST_CASE("Rulings: speeds on links that were another tenth faster or slower are forgotten, and no others") {
  Gated group = climbing();
  for (int i = 0; i < 50; ++i) group.step(flat(0.95));
  CHECK(tries_of(group) == 49);
  group.sync_seconds = 0.105;
  for (int i = 0; i < 5; ++i) group.step(flat(0.95));
  CHECK(tries_of(group) == 54);
  group.sync_seconds = 0.2;
  for (int i = 0; i < 5; ++i) group.step(flat(0.95));
  CHECK(tries_of(group) < 5);

  Gated settled = climbing();
  for (int i = 0; i < 200; ++i) settled.step(flat(0.95));
  CHECK(memory_of(settled).at(gravac_settled) == 1);
  settled.sync_seconds = 0.03;
  for (int i = 0; i < 5; ++i) settled.step(flat(0.95));
  CHECK(memory_of(settled).at(gravac_settled) == 0);
}

TEST_CASE("Rulings: times that only vary are no other links") {
  Gated group = climbing();
  Rng rng(7);
  for (int i = 0; i < 400; ++i) {
    group.sync_seconds = 0.1 * std::exp(0.3 * rng.normal());
    group.step(flat(0.95));
  }
  CHECK(tries_of(group) > 350);
}

TEST_CASE("Rulings: behind a round that was held no exchange was measured") {
  Gated group = climbing();
  for (int i = 0; i < 300; ++i) {
    group.flags = i % 3 == 1 ? std::uint32_t{flag_incomplete} : 0;
    group.sync_seconds = i % 3 == 2 ? 0.001 : 0.1;  // of the round before
    group.step(flat(0.95));
  }
  CHECK(tries_of(group) == 99);
}

TEST_CASE("Rulings: a compromise is looked at again when links have changed") {
  Gated group("moo", 4, 1'000'000);
  const auto run = [&](double speed) {
    for (int i = 0; i < 60; ++i) {
      group.sent = i % 2 == 0 ? 1e5 : 1e6;
      group.sync_seconds = 0.01 + group.sent / speed;
      group.step(flat(0.9));
    }
    return memory_of(group).at(moo_chosen_seconds);
  };
  const double fast = run(1e7);
  CHECK(run(1e6) > 5 * fast);
}

TEST_CASE("Rulings: where gains differ between devices their mean decides, once for all") {
  for (const char* policy : {"gravac", "moo"}) {
    CAPTURE(policy);
    const auto way = [&](double a, double b) {
      Gated group(policy, 2, 1'000'000);
      group.settings.set("compression.moo.epsilon", 0.7);
      return group.step({flat(a), flat(b)}).now.way.value().compressor;
    };
    CHECK(way(0.95, 0.5) == "topk");
    CHECK(way(0.95, 0.4) == "dense");
    CHECK(way(0.4, 0.95) == "dense");
  }
}

TEST_CASE("Rulings: the learning rate follows the rows of steps, not those of rounds that are held") {
  Gated group("none", 2, 1000);
  group.config.learning_rate_policy = "constant";
  group.settings.set("train.lr_scaling.rule", std::string("linear"));
  for (int i = 0; i < 50; ++i) CHECK(group.step(flat(0)).now.learning_rate_factor == 1);
  for (int i = 0; i < 50; ++i) {  // one of them has its rows, the other does not
    group.flags = i % 2 == 0 ? std::uint32_t{flag_incomplete} : 0;
    group.rows_of_first = i % 2 == 0 ? 0 : 64;
    CHECK(group.step(flat(0)).now.learning_rate_factor == 1);
  }
}

TEST_CASE("Rulings: who waits for rows or for others computes as fast as before") {
  Gated group("none", 2, 1000);
  group.config.batch_policy = "throughput";
  for (int i = 0; i < 100; ++i) {
    group.wait_of_first = 10;
    group.sync_seconds = 5;
    group.step(flat(0));
  }
  CHECK(group.state.last.next.rows == std::vector<std::uint32_t>{64, 64});
}

TEST_CASE("Rulings: compressor and collective do not change in one plan, nor while they are frozen") {
  const ControllerEntry compression{Role::compression, "topk", "test only",
                                    [](const Inputs& in, std::span<double>, RoundPlan& plan) {
                                      compress_with(in.config, "topk", 0.1, plan.next);
                                    }};
  const ControllerEntry collective{
      Role::collective, "two_sided", "test only",
      [](const Inputs&, std::span<double>, RoundPlan& plan) { plan.next.way.collective = "two_sided"; }};
  const Controllers both{&compression, &collective};
  Gated group("fixed", 3, 10'000);
  group.config.settings = settings_of(group.config, group.settings);
  const FactsTable table = busy_table(0);
  PolicyState state;
  state.last.next.way.collective = "sum";
  state.last.next.way.payload_bytes = group.config.contribution_bytes;
  state.last.next.freeze = true;
  Schedule next = plan(table, group.config, both, state).next;
  CHECK(next.way.compressor == "dense");
  CHECK(next.way.collective == "sum");
  CHECK(next.way.payload_bytes == group.config.contribution_bytes);
  next = plan(table, group.config, both, state).next;
  CHECK(next.way.compressor == "topk");
  CHECK(next.way.collective == "gather");  // topk excludes sum
  next = plan(table, group.config, both, state).next;
  CHECK(next.way.collective == "two_sided");
}

TEST_CASE("Rulings: with a device that leaves everything is sent, where that is decided with the facts") {
  Gated group("two-point", 3, 10'000);
  for (int i = 0; i < 3; ++i) CHECK(group.step(flat(0.95)).now.way.value().compressor == "topk");
  group.flags = flag_leaving;
  const RoundPlan& last = group.step(flat(0.95));
  CHECK(last.now.leaving == std::vector<std::uint32_t>{0});
  CHECK(last.now.way.value().compressor == "dense");
  CHECK(last.now.way.value().keep_ratio == 1);
  CHECK(last.now.way.value().payload_bytes == group.config.contribution_bytes);
}

namespace {

/// True if controller transfer/auto injects rows on ten devices, when policy auto of sync has set N local
/// steps.
bool sends_copies(double in_common, std::uint32_t local_steps, float feature_skew = 0, int rounds = 1) {
  PolicyConfig config;
  config.sync_policy = config.compression_policy = config.collective = config.transfer_policy = "auto";
  config.tensors = {50'000};
  config.contribution_bytes = 200'000;
  config.settings = settings_of(config, runtime::Config::default_settings());
  const ControllerEntry* transfer = nullptr;
  for (const ControllerEntry* entry : builtin_controllers())
    if (entry->role == Role::transfer && entry->name == "auto") transfer = entry;
  FactsTable table;
  table.facts.resize(10);
  for (std::uint32_t rank = 0; rank < 10; ++rank) {
    Facts& f = table.facts[rank];
    f.rank = rank;
    f.rows = 100;
    f.measurements.assign(measurements_of({transfer}), 0);
    for (std::size_t label = 0; label < 10; ++label)
      f.measurements[label] =
          static_cast<float>(10 * in_common + (label == rank ? 100 * (1 - in_common) : 0));
    f.measurements[label_bins] = 785 * 100;
    f.measurements[label_bins + 1] = rank == 0 ? 10 * feature_skew : 0;
  }
  std::vector<double> memory(transfer->memory + 10 * transfer->memory_per_rank);
  RoundPlan plan;
  for (int round = 0; round < rounds; ++round) {
    plan = {};
    plan.now.mode = Mode::delta;
    plan.next.local = LocalSchedule{.steps = local_steps};
    plan.next.way.keep_ratio = 0.02;
    plan.next.rows.assign(10, 5);
    const Schedule entered = plan.next;
    transfer->propose({table, config, entered}, memory, plan);
  }
  return plan.next.injection.has_value();
}

}  // namespace

TEST_CASE(
    "Rulings: a budget that asks for many own steps does not keep copies from labels with little in common") {
  CHECK(sends_copies(0, 4));
  CHECK(sends_copies(0, 12));
  // Half alike: few local steps indicate drift, many the opposite.
  CHECK(sends_copies(0.4, 4));
  CHECK_FALSE(sends_copies(0.4, 12));
  CHECK_FALSE(sends_copies(1, 4));
}

TEST_CASE(
    "Rulings: devices whose features differ send copies, however many steps they make, once that lasts") {
  CHECK(sends_copies(1, 4, 0.9F, 20));
  CHECK(sends_copies(1, 12, 0.9F, 20));
  CHECK_FALSE(sends_copies(1, 4, 0.9F, 3));
  CHECK_FALSE(sends_copies(1, 4, 0.4F, 100));
  CHECK_FALSE(sends_copies(1, 4, 0, 100));
}
