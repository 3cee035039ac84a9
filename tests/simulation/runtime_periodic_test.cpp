// sync.policy = "periodic": devices make local steps and synchronize every N steps or seconds.
#include <doctest/doctest.h>

#include <set>

#include "tests/support/group_run.h"
#include "tests/support/parts/parts.h"
#include "tests/support/real_node.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using sync::policy::Mode;

namespace {

LoadedConfig periodic_job(std::uint32_t devices, std::int64_t local_steps) {
  auto job = linear_job(devices);
  auto& c = job.config;
  c.batch.policy = "fixed";
  c.batch.rows = 16;
  c.sync.policy = local_steps > 0 ? "periodic" : "every";
  c.settings.set("sync.local_steps", std::max<std::int64_t>(local_steps, 1));
  return job;
}

/// Rows of `agreements` synchronizations of `devices` that make `local_steps` steps of 16 rows before each:
/// the first one of a view follows one step.
std::uint64_t rows_of(std::uint64_t agreements, std::uint64_t devices, std::uint64_t local_steps) {
  return devices * 16 * (1 + (agreements - 1) * local_steps);
}

}  // namespace

TEST_CASE("Periodic: between agreements nothing is sent, and each tells of all rows of all its steps") {
  const Outcome out = run(periodic_job(3, 5), fast(8));
  CHECK(out.step == 8);
  CHECK(out.rows == rows_of(8, 3, 5));
  CHECK(rounds_of(out, Mode::delta) == 8);
  CHECK(rounds_of(out, Mode::gradients) == 0);
  CHECK(out.rounds.size() <= 8 + 2);  // the first ones, before rates are known
  std::uint32_t steps = 1;
  for (const auto& round : out.rounds) {
    if (round.plan.now.mode != Mode::delta) continue;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      CHECK(round.table.facts[rank].rows == steps * 16);
      CHECK(round.table.facts[rank].interval.rows_trained == steps * 16);
      CHECK(round.table.sections[rank].step_rows == std::vector<std::uint32_t>(steps, 16));
    }
    steps = 5;
  }
  for (const auto& parameters : out.parameters) CHECK(parameters == out.parameters[0]);
}

TEST_CASE("Overlap: an agreement that takes as long as its steps do hides behind those of the next") {
  auto job = periodic_job(3, 10);
  auto options = fast(20);
  options.link = {std::chrono::milliseconds(10), 12.5e6};  // of ten steps of 4 ms
  options.rates = {{{0, 50'000}}};
  const Outcome waiting = run(job, options);
  job.config.settings.set("sync.overlap", std::string("always"));
  const Outcome going_on = run(job, options);
  CHECK(going_on.step == 20);
  CHECK(going_on.rows == waiting.rows);
  CHECK(waiting.seconds - going_on.seconds > 0.9 * 18 * 0.02);  // two messages in sequence
  std::uint32_t ahead = 0;
  std::uint32_t steps = 1;
  for (const auto& round : going_on.rounds) {
    if (round.plan.now.mode != Mode::delta) continue;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const auto& section = round.table.sections[rank];
      CHECK(round.table.facts[rank].rows == steps * 16);
      CHECK(section.step_rows == std::vector<std::uint32_t>(steps, 16));
      if (!section.steps_ahead.empty()) ahead = section.steps_ahead.front();
    }
    steps = 10;
  }
  CHECK(ahead >= 4);
  CHECK(ahead < 10);
  for (const auto& parameters : going_on.parameters) CHECK(parameters == going_on.parameters[0]);
}

TEST_CASE("Overlap: an agreement that takes longer than its steps is waited for, one at a time") {
  auto job = periodic_job(2, 4);
  job.config.settings.set("sync.overlap", std::string("always"));
  auto options = fast(10);
  options.link = {std::chrono::milliseconds(100), 12.5e6};
  options.rates = {{{0, 50'000}}};
  const double until_ten = run(job, options).seconds;
  options.stop_after.rounds = 20;
  const Outcome out = run(job, options);
  CHECK(out.step == 20);
  CHECK(out.rows == rows_of(20, 2, 4));
  CHECK(out.seconds - until_ten == doctest::Approx(10 * 0.2).epsilon(0.02));  // two messages in sequence
  const auto& last = out.rounds.back();
  CHECK(last.table.sections[1].steps_ahead == std::vector<std::uint32_t>{4});
}

TEST_CASE("Overlap: rows of steps that the end has overtaken are not counted as trained") {
  auto job = periodic_job(2, 4);
  job.config.settings.set("sync.overlap", std::string("always"));
  auto options = fast(10);
  options.link = {std::chrono::milliseconds(100), 12.5e6};
  auto group = build_group(job, options);
  run_to_end(*group);
  std::uint64_t trained = 0;
  for (std::size_t i = 0; i < group->size(); ++i) trained += group->node(i).status().rows_trained.load();
  CHECK(trained == group->node(0).state().rows);
}

TEST_CASE(
    "Overlap: steps ahead of a round that sums gradients are agreed on in it, and every row counts once") {
  auto job = periodic_job(2, 4);
  job.config.sync.policy = "overlap_then_sums";
  auto options = fast(30);
  options.link = {std::chrono::milliseconds(6), 12.5e6};  // less than four steps: some are made ahead
  options.rates = {{{0, 50'000}}};
  const PartsCatalog catalog;
  std::vector<RecordedRound> rounds;
  SimulatedParts parts;
  parts.catalog = catalog.catalog();
  parts.decisions = [&](std::size_t device) -> std::unique_ptr<DecisionLog> {
    if (device == 0) return std::make_unique<RecordingDecisions>(rounds);
    return make_null_decision_log();
  };
  auto group = build_group(job, options, std::move(parts));
  run_to_end(*group);
  const AgreedState& state = group->node(0).state();
  std::uint64_t announced = 0;
  for (const auto& [partition, progress] : state.partitions) announced += progress.trained;
  CHECK(state.rows == announced);
  int ahead = 0;
  for (std::size_t i = 1; i < rounds.size(); ++i) {
    if (rounds[i - 1].plan.next.local) continue;
    const auto& section = rounds[i].table.sections[1];
    ahead += section.step_rows.empty() ? 0 : 1;
    CHECK(rounds[i].table.facts[1].rows == rounds[i].table.facts[1].interval.rows_trained);
  }
  CHECK(ahead > 3);
}

TEST_CASE("Periodic: a device says how the group agrees next, and what its bytes were for") {
  auto job = periodic_job(3, 5);
  job.config.compression.policy = "fixed";
  job.config.settings.set("compression.compressor", std::string("topk"));
  job.config.settings.set("compression.keep", 0.25);
  auto group = build_group(job, fast(8));
  run_to_end(*group);
  const auto& status = group->node(1).status();
  CHECK(status.local_steps == 5);
  CHECK(status.keep_ratio == 0.25);
  CHECK(status.bytes_sent_for[sync::Traffic::contributions] > 0);
  CHECK(status.bytes_sent_for[sync::Traffic::facts] > 0);
  std::uint64_t sent = 0;
  status.bytes_sent_for.each([&](std::string_view, std::uint64_t bytes) { sent += bytes; });
  CHECK(sent == status.bytes_sent);
  const auto every = build_group(periodic_job(3, 0), fast(8));
  run_to_end(*every);
  CHECK(every->node(1).status().local_steps == 0);
}

TEST_CASE("Periodic: one own step is every batch, to the last bit") {
  const Outcome every = run(periodic_job(3, 0), fast(20));
  const Outcome one = run(periodic_job(3, 1), fast(20));
  CHECK(one.step == 20);
  CHECK(rounds_of(one, Mode::gradients) == 20);
  CHECK(one.parameters == every.parameters);
  CHECK(one.momentum == every.momentum);
  CHECK(one.seconds == every.seconds);
}

TEST_CASE("Periodic: a device alone learns what it learns step by step, with its own momentum") {
  const Outcome every = run(periodic_job(1, 0), fast(31));
  const Outcome apart = run(periodic_job(1, 10), fast(4));
  REQUIRE(apart.rows == every.rows);
  double most = 0;
  double moved = 0;
  for (std::size_t i = 0; i < every.parameters[0].size(); ++i) {
    most = std::max(most, std::abs(double{every.parameters[0][i]} - apart.parameters[0][i]));
    moved = std::max(moved, std::abs(double{every.parameters[0][i]}));
  }
  CHECK(moved > 0.01);
  CHECK(most < 1e-5);
}

TEST_CASE("Periodic: by the clock, however many steps a device makes meanwhile") {
  auto job = periodic_job(2, 10'000);
  job.config.batch.policy = "stream";
  job.config.settings.set("sync.own_time", Duration(std::chrono::seconds(2)));
  auto options = fast(5);
  options.rates = {{{0, 400}}, {{0, 100}}};
  const Outcome out = run(job, options);
  CHECK(out.step == 5);
  CHECK(out.seconds > 7.5);
  CHECK(out.seconds < 10);
  const auto& last = out.rounds.back();
  CHECK(last.table.facts[0].rows > 600);
  CHECK(last.table.facts[1].rows > 150);
  CHECK(last.table.facts[1].rows < 250);
  CHECK(last.plan.now.weights[0] > 3 * last.plan.now.weights[1]);
}

TEST_CASE("Periodic: a device that must end calls the others, who come when their batch is done") {
  auto job = periodic_job(3, 10'000);
  job.config.settings.set("sync.own_time", Duration(std::chrono::seconds(600)));
  auto options = fast(0);
  options.stop_after.seconds = 5;
  const Outcome out = run(job, options, 100);
  CHECK(out.step == 2);
  CHECK(out.seconds < 7);
  CHECK((out.rounds.back().table.facts[0].flags & sync::flag_early) != 0);
  for (const auto& facts : out.rounds.back().table.facts) CHECK(facts.rows > 1000);
}

TEST_CASE("Periodic: a device that leaves calls the others, who come though their own time is long") {
  for (const bool apart : {false, true}) {
    CAPTURE(apart);
    auto job = periodic_job(3, 8'000);
    job.config.settings.set("sync.own_time", Duration(std::chrono::seconds(600)));
    auto options = fast(0);
    options.stop_after.seconds = 500;
    options.faults = {{.at_s = 5, .kind = Fault::Kind::stop, .device = 1}};
    std::vector<RecordedRound> rounds;
    SimulatedParts parts;
    parts.separate = apart;
    parts.decisions = [&](std::size_t device) -> std::unique_ptr<DecisionLog> {
      if (device == 0) return std::make_unique<RecordingDecisions>(rounds);
      return make_null_decision_log();
    };
    auto group = build_group(job, options, std::move(parts));
    group->run_until([&] { return group->seconds() > 7; });
    REQUIRE(rounds.size() >= 2);
    const auto& facts = rounds.back().table.facts;
    CHECK((facts[1].flags & sync::flag_early) != 0);
    CHECK((facts[1].flags & sync::flag_leaving) != 0);
    for (const auto& f : facts) CHECK(f.rows > 1000);
  }
}

TEST_CASE("Periodic: a stream without rows delays nobody, and its device has the same model") {
  auto job = periodic_job(2, 10);
  auto options = fast(6);
  options.rates = {{{0, 5000}}, {{0, 0}}};
  const Outcome out = run(job, options);
  CHECK(out.step == 6);
  CHECK(out.rows == rows_of(6, 1, 10));
  CHECK(out.seconds < 6 * 10 * 0.2 + 3);
  CHECK(out.parameters[0] == out.parameters[1]);
  CHECK(out.rounds.back().plan.now.weights == std::vector<double>{1, 0});
}

TEST_CASE("Periodic: a slow device is waited for, as long as it may take, and no longer") {
  auto job = periodic_job(2, 10);
  job.config.sync.on_peer_loss = "reform";
  auto options = fast(4);
  // Ten steps of this device take 20 s, four times the progress deadline; the other one's take 40 ms.
  options.profiles = {{std::chrono::milliseconds(2), 8000}, {std::chrono::seconds(2), 8000}};
  options.stop_after.rounds = 9;  // then contributions leave early, if they ever do
  const Outcome out = run(job, options);
  CHECK(out.step == 9);
  CHECK(out.views == 1);
  CHECK(out.rows == rows_of(9, 2, 10));
}

TEST_CASE(
    "Periodic: a stream too slow for a row in each tick has the weight of its rows, also where weights are "
    "guessed") {
  const auto loss = [](bool speculate) {
    auto job = periodic_job(3, 10);
    job.config.batch.policy = "stream";
    job.config.compression.policy = "fixed";
    job.config.settings.set("compression.compressor", std::string("topk"));
    job.config.settings.set("compression.keep", 0.3);
    job.config.sync.speculate = speculate;
    SimulateOptions options = fast(0);
    options.rates = {{{0, 100}}, {{0, 3}}, {{0, 3}}};
    options.stop_after.seconds = 60;
    auto group = build_group(job, options);
    run_to_end(*group);
    return group->node(0).status().loss.load();
  };
  CHECK(loss(true) < 1.1 * loss(false));
}

TEST_CASE("Periodic: no batch is smaller than the least that is wanted, however slow the stream") {
  auto job = periodic_job(2, 4);
  job.config.batch.policy = "stream";
  job.config.batch.min = 16;
  auto options = fast(3);
  options.rates = {{{0, 400}}, {{0, 20}}};
  const Outcome out = run(job, options);
  CHECK(out.step == 3);
  for (const auto& round : out.rounds)
    for (const auto& section : round.table.sections)
      for (const std::uint32_t rows : section.step_rows) CHECK(rows >= 16);
}

TEST_CASE(
    "Periodic: a device that falls silent on its own is late when its steps should be over, and is lost "
    "then") {
  auto job = periodic_job(2, 10);
  job.config.sync.on_peer_loss = "reform";
  job.config.sync.deadline = std::chrono::seconds(5);
  auto options = fast(6);
  options.profile = {std::chrono::milliseconds(200),
                     8000};  // ten steps take 2 s, and their turns 2 s at most
  SimulatedParts parts;
  parts.separate = true;
  auto group = build_group(job, options, std::move(parts));
  double silent_since = 0;
  double lost_at = 0;
  // Both: otherwise the other device would wait for a payload, which has a deadline of its own.
  std::set<std::uint32_t> silent;
  group->network().set_loss([&](std::uint32_t from, std::uint32_t, sync::Lane lane, std::uint64_t index) {
    if (lane != sync::Lane::facts || index != 4 || !silent.insert(from).second) return false;
    silent_since = group->seconds();
    return true;
  });
  group->run_until([&] {
    if (silent_since > 0 && lost_at == 0 && group->node(0).status().world.load() == 0)
      lost_at = group->seconds();
    return group->seconds() > 100;
  });
  REQUIRE(silent_since > 0);
  CHECK(lost_at > silent_since + 4.9);
  CHECK(lost_at < silent_since + 10.5);
  CHECK(group->all_ended());
  CHECK(group->node(0).state().stamp.step == 6);
  CHECK(group->node(0).state().rows == rows_of(6, 2, 10));
}
