// inject.policy: devices send each other rows for their steps; the rows count only for their owner.
#include <doctest/doctest.h>

#include "tests/support/group_support.h"
#include "tests/support/real_node.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using sync::policy::Mode;

namespace {

struct Outcome {
  std::vector<std::vector<float>> parameters;  ///< by device
  std::vector<RecordedRound> rounds;           ///< as recorded by device 0
  std::uint64_t rows = 0;
  std::uint64_t step = 0;
};

/// Three devices; each sends the others a fifth of its rows: of a batch of 16, ten are its own.
LoadedConfig job_of(const std::string& inject, std::int64_t local_steps) {
  auto job = linear_job(3);
  auto& c = job.config;
  c.batch.policy = "fixed";
  c.batch.rows = 16;
  c.sync.policy = local_steps > 0 ? "periodic" : "every";
  c.sync.on_peer_loss = "reform";
  c.settings.set("sync.local_steps", std::max<std::int64_t>(local_steps, 1));
  c.inject.policy = inject;
  c.settings.set("inject.random.devices", 1.0);
  c.settings.set("inject.random.share", 0.2);
  return job;
}

SimulateOptions fast(std::uint64_t rounds) {
  SimulateOptions options;
  options.rates = {{{0, 5000}}};
  options.profile = {std::chrono::milliseconds(2), 8000};
  options.link = {std::chrono::milliseconds(1), 12.5e6};
  options.stop_after.rounds = rounds;
  return options;
}

Outcome run(const LoadedConfig& job, const SimulateOptions& options) {
  Outcome out;
  SimulatedParts parts;
  parts.decisions = [&](std::size_t device) -> std::unique_ptr<DecisionLog> {
    if (device == 0) return std::make_unique<RecordingDecisions>(out.rounds);
    return make_null_decision_log();
  };
  auto group = build_group(job, options, std::move(parts));
  run_to_end(*group, [] { return false; }, 1000);
  for (std::size_t i = 0; i < group->size(); ++i) {
    const auto p = group->node(i).state().model.parameters().as<float>();
    out.parameters.emplace_back(p.begin(), p.end());
  }
  out.step = group->node(0).state().stamp.step;
  out.rows = group->node(0).state().rows;
  return out;
}

/// Checks rows in facts and in announced intervals in each synchronization with injected rows, and the time
/// of six more rows per batch.
void check_only_own_rows_count(const Outcome& out, Mode mode, std::uint32_t rows) {
  std::size_t rounds = 0;
  for (std::size_t i = 3; i < out.rounds.size(); ++i) {
    const auto& round = out.rounds[i];
    if (round.plan.now.mode != mode) continue;
    ++rounds;
    for (const sync::Facts& f : round.table.facts) {
      CHECK(f.rows == rows);
      CHECK(f.compute_seconds == doctest::Approx(0.002 + 16.0 / 8000).epsilon(0.001));
      CHECK(f.interval.rows_trained == rows);
    }
  }
  CHECK(rounds > 5);
}

}  // namespace

TEST_CASE("Injection: own steps see rows of all others, and only their own rows count") {
  const Outcome out = run(job_of("random", 5), fast(12));
  CHECK(out.step == 12);
  check_only_own_rows_count(out, Mode::delta, 5 * 10);
  for (const auto& parameters : out.parameters) CHECK(parameters == out.parameters[0]);
  std::uint64_t counted = 0;
  for (const auto& round : out.rounds)
    if (round.plan.now.mode == Mode::delta)
      for (const sync::Facts& f : round.table.facts) counted += f.interval.rows_trained;
  CHECK(out.rows == counted);
  // A repetition has the same bits; without injected rows the same own rows give other bits.
  CHECK(run(job_of("random", 5), fast(12)).parameters == out.parameters);
  auto alone = job_of("none", 5);
  alone.config.batch.rows = 10;
  const Outcome without = run(alone, fast(12));
  CHECK(without.parameters[0] != out.parameters[0]);
}

TEST_CASE("Injection: gradients after every batch are of copies, too, and only own rows count") {
  const Outcome out = run(job_of("random", 0), fast(20));
  CHECK(out.step == 20);
  check_only_own_rows_count(out, Mode::gradients, 10);
  for (const auto& parameters : out.parameters) CHECK(parameters == out.parameters[0]);
}

TEST_CASE("Injection: steps that go on while the group agrees, and links that carry each message by itself") {
  auto job = job_of("random", 5);
  job.config.settings.set("sync.overlap", std::string("always"));
  job.config.sync.collective = "two_sided";
  job.config.compression.policy = "fixed";
  job.config.settings.set("compression.compressor", std::string("topk"));
  job.config.settings.set("compression.keep", 0.2);
  auto options = fast(20);
  options.own_links = {{std::chrono::milliseconds(2), 1e6}};
  const Outcome out = run(job, options);
  CHECK(out.step == 20);
  for (const auto& parameters : out.parameters) CHECK(parameters == out.parameters[0]);
}

TEST_CASE("Injection: a device that dies takes its copies along, and the others' rows stay exact") {
  auto options = fast(40);
  options.faults = {{.at_s = 0.1, .kind = Fault::Kind::kill, .device = 1},
                    {.at_s = 0.3, .kind = Fault::Kind::start, .device = 1}};
  for (const std::int64_t local_steps : {0, 5}) {
    INFO(local_steps);
    std::vector<RecordedRound> rounds;
    SimulatedParts parts;
    auto group = build_group(job_of("random", local_steps), options, std::move(parts));
    run_to_end(*group, [] { return false; }, 1000);
    std::uint64_t trained = 0;
    for (const auto& [partition, progress] : group->node(0).state().partitions) {
      CHECK(progress.trained + progress.all_dropped() ==
            static_cast<std::uint64_t>(progress.next.offset - progress.start.offset));
      trained += progress.trained;
    }
    CHECK(trained == group->node(0).state().rows);
    CHECK(group->node(0).state().stamp.lineage > 1);
  }
}
