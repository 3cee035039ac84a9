#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/group_support.h"

using namespace rivulet;
using namespace rivulet::testing;
using sync::policy::Mode;

namespace {

runtime::SimulateOptions uneven(double seconds) {
  runtime::SimulateOptions options;
  options.rates = {{{0, 800}}, {{0, 400}}, {{0, 200}}, {{0, 100}}};
  options.profile = {std::chrono::milliseconds(2), 8000};
  options.link = {std::chrono::milliseconds(1), 12.5e6};
  options.stop_after.seconds = seconds;
  return options;
}

double p99(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[static_cast<std::size_t>(0.99 * static_cast<double>(values.size() - 1))];
}

/// Seconds between entries of consecutive rounds, as recorded by device 0.
std::vector<double> round_seconds(const std::vector<RecordedRound>& rounds) {
  std::vector<double> out;
  for (const auto& r : rounds) {
    const auto& f = r.table.facts[0];
    out.push_back(f.wait_seconds + f.compute_seconds + f.sync_seconds);
  }
  return out;
}

}  // namespace

TEST_CASE("Group: uneven streams train one state, use every row that arrives, and learn") {
  auto group = build_group(linear_job(4), uneven(20));
  run_to_end(*group);
  const auto s = group->summary();
  CHECK(s.parameters_equal);
  CHECK(s.rounds > 150);
  CHECK(s.digests_compared > 4 * s.rounds);
  std::uint64_t consumed = 0;
  std::uint64_t trained = 0;
  for (const auto& d : s.devices) {
    CHECK(d.digest == s.devices[0].digest);
    CHECK(d.rows_consumed == d.rows_trained + d.rows_waiting);
    consumed += d.rows_consumed;
    trained += d.rows_trained;
  }
  CHECK(consumed == doctest::Approx(1500 * 20).epsilon(0.02));
  CHECK(static_cast<double>(trained) >= 0.98 * static_cast<double>(consumed));
  CHECK(group->node(0).status().accuracy.load() > 0.8);
  CHECK(group->node(0).state().rows == trained);
  for (std::size_t i = 0; i < group->size(); ++i) CHECK_FALSE(group->node(i).worker().ending().error);
}

TEST_CASE("Group: the same seed gives the same bytes, another seed does not") {
  const auto digest = [](std::uint64_t seed) {
    auto job = linear_job(3);
    job.config.job.seed = seed;
    auto group = build_group(job, uneven(5));
    run_to_end(*group);
    return runtime::to_json(group->summary());
  };
  CHECK(digest(7) == digest(7));
  CHECK(digest(7) != digest(8));
}

namespace {

/// Results of a group, and the fate of contributions that left with the facts.
struct Bets {
  std::string digest;
  std::uint64_t used = 0, wasted = 0, bytes = 0, steps = 0;
  double synced = 0;
};

Bets run_with(bool speculate, runtime::LoadedConfig job, runtime::SimulateOptions options) {
  job.config.sync.speculate = speculate;
  auto group = build_group(job, options);
  run_to_end(*group);
  const auto s = group->summary();
  CHECK(s.parameters_equal);
  const auto& status = group->node(0).status();
  return {s.devices[0].digest,
          status.early_payloads[runtime::EarlyPayload::used].load(),
          status.early_payloads[runtime::EarlyPayload::wasted].load(),
          status.bytes_sent.load(),
          group->node(0).state().stamp.step,
          status.sync_s.load()};
}

}  // namespace

TEST_CASE("Group: a foreseen plan halves the exchanges and changes no bit") {
  auto job = linear_job(4);
  job.config.batch.policy = "fixed";  // rows do not depend on the duration of a round
  job.config.batch.rows = 16;
  auto options = uneven(1000);
  options.rates = {{{0, 400}}};
  options.stop_after = {.rounds = 200};
  const Bets with = run_with(true, job, options);
  const Bets without = run_with(false, job, options);
  CHECK(with.digest == without.digest);
  CHECK(with.steps == without.steps);
  CHECK(without.used + without.wasted == 0);
  CHECK(10 * with.used > 9 * with.steps);
  CHECK(with.bytes == without.bytes);
  CHECK(with.synced < 0.6 * without.synced);  // two times the latency of 1 ms, and little else
}

TEST_CASE("Group: a stream that falls silent costs the others nothing") {
  auto options = uneven(20);
  options.rates[1] = {{0, 400}, {10, 0}};  // silent from 10 s on
  std::vector<RecordedRound> rounds;
  SUBCASE("policy stream") {
    runtime::SimulatedParts parts;
    parts.decisions = [&](std::size_t device) -> std::unique_ptr<runtime::DecisionLog> {
      if (device == 0) return std::make_unique<RecordingDecisions>(rounds);
      return runtime::make_null_decision_log();
    };
    auto group = build_group(linear_job(4), options, parts);
    group->run_until([&] { return group->seconds() >= 13; });
    std::vector<std::uint64_t> before;
    for (std::size_t i = 0; i < 4; ++i) before.push_back(group->node(i).status().rows_trained.load());
    const std::size_t first = rounds.size();
    run_to_end(*group);
    for (const std::size_t i : {0UL, 2UL, 3UL}) {
      const double rate = options.rates[i][0].second;
      const double trained = static_cast<double>(group->node(i).status().rows_trained.load() - before[i]);
      CHECK(trained >= 0.95 * rate * 7);
    }
    const std::vector<RecordedRound> after(rounds.begin() + static_cast<std::ptrdiff_t>(first), rounds.end());
    double slowest = 0;
    for (const auto& r : after)
      for (const auto& f : r.table.facts) slowest = std::max(slowest, double{f.compute_seconds});
    CHECK(p99(round_seconds(after)) <= 0.2 + 2 * slowest);
    // The silent device enters immediately instead of after max_wait: the others still meet once per tick.
    CHECK(static_cast<double>(after.size()) >= 0.9 * 7 / 0.1);
  }
}

TEST_CASE(
    "Group: when all streams are silent nothing changes, rounds back off, and it wakes within max_wait") {
  auto options = uneven(40);
  for (auto& trace : options.rates) trace = {{0, trace[0].second}, {5, 0}, {30.05, trace[0].second}};
  std::vector<RecordedRound> rounds;
  runtime::SimulatedParts parts;
  parts.decisions = [&](std::size_t device) -> std::unique_ptr<runtime::DecisionLog> {
    if (device == 0) return std::make_unique<RecordingDecisions>(rounds);
    return runtime::make_null_decision_log();
  };
  auto group = build_group(linear_job(4), options, parts);
  group->run_until([&] { return group->seconds() >= 12; });
  const auto quiet = group->summary();
  const std::size_t rounds_at_12 = rounds.size();
  group->run_until([&] { return group->seconds() >= 30; });
  const auto still = group->summary();
  CHECK(still.rounds == quiet.rounds);
  CHECK(still.devices[0].digest == quiet.devices[0].digest);
  CHECK(rounds.size() - rounds_at_12 <= 20);  // one per second
  CHECK(rounds.size() - rounds_at_12 >= 16);  // but the group runs
  run_to_end(*group, [&] { return group->node(0).state().stamp.step > still.rounds; });
  CHECK(group->seconds() <= 30.05 + 0.2 + 0.02);
}

TEST_CASE("Group: at rest, who has no rows enters when a peer does, not when its own time is over") {
  for (const bool apart : {false, true}) {
    for (const double wakes_at :
         {30.05, 30.35, 30.65, 30.95}) {  // at any time within the second between two rounds
      CAPTURE(apart);
      CAPTURE(wakes_at);
      auto options = uneven(40);
      for (auto& trace : options.rates) trace = {{0, 100}, {5, 0}};
      options.rates[0] = {{0, 100}, {5, 0}, {wakes_at, 100}};
      runtime::SimulatedParts parts;
      parts.separate = apart;
      auto group = build_group(linear_job(4), options, std::move(parts));
      run_to_end(*group, [&] { return group->seconds() >= 30; });
      const std::uint64_t step = group->node(0).state().stamp.step;
      run_to_end(*group, [&] { return group->node(0).state().stamp.step > step; });
      CHECK(group->seconds() > wakes_at);
      // The first row after 10 ms, a few messages of 1 ms, and 2 ms of computation.
      CHECK(group->seconds() < wakes_at + 0.05);
    }
  }
}

TEST_CASE("Group: policy fixed waits for full batches of the slowest stream and loses nobody") {
  auto options = uneven(0);
  options.rates = {{{0, 100}}, {{0, 50}}, {{0, 20}}, {{0, 5}}};
  options.stop_after = {.rounds = 4};
  std::vector<RecordedRound> rounds;
  runtime::SimulatedParts parts;
  parts.decisions = [&](std::size_t device) -> std::unique_ptr<runtime::DecisionLog> {
    if (device == 0) return std::make_unique<RecordingDecisions>(rounds);
    return runtime::make_null_decision_log();
  };
  auto job = linear_job(4);
  job.config.batch.policy = "fixed";
  auto group = build_group(job, options, parts);
  run_to_end(*group);
  const auto s = group->summary();
  CHECK(s.parameters_equal);
  CHECK(s.rounds == 4);
  CHECK(group->node(0).state().rows == 4 * 4 * 64);
  // 64 rows at 5 rows/s: 12.8 s per step, regardless of the others.
  CHECK(group->seconds() >= 4 * 12.8 - 0.3);
  CHECK(group->seconds() <= 4 * 12.8 + 3);
  std::size_t held = 0;
  for (const auto& r : rounds) {
    held += r.plan.now.mode == Mode::defer ? 1 : 0;
    if (r.plan.now.mode != Mode::gradients) continue;
    for (const auto& f : r.table.facts) CHECK(f.rows == 64);
  }
  CHECK(held > 4);
  for (std::size_t i = 0; i < group->size(); ++i) CHECK_FALSE(group->node(i).worker().ending().error);
}

TEST_CASE(
    "Group: --stop-after counts on while all members are started again, one after the other and again") {
  auto options = uneven(1000);
  options.stop_after = {.rounds = 200};
  // Each is back before the next is killed; no process lives for 200 rounds.
  for (std::size_t i = 0; i < 12; ++i) {
    const double at = 2 + 2.5 * static_cast<double>(i);
    options.faults.push_back({at, runtime::Fault::Kind::kill, i % 4, {}});
    options.faults.push_back({at + 0.5, runtime::Fault::Kind::start, i % 4, {}});
  }
  auto job = linear_job(4);
  job.config.sync.on_peer_loss = "reform";
  auto group = build_group(job, options);
  run_to_end(*group, [] { return false; }, 60);
  REQUIRE(group->all_ended());
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK_FALSE(group->node(i).worker().ending().error);
    CHECK(group->node(i).state().stamp.step == 200);
    CHECK(group->node(i).worker().rows_since_entry() < group->node(i).state().rows);
  }
}
