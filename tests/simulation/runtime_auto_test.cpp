// sync.policy = "auto": groups choose how to synchronize from their devices' measurements.
#include <doctest/doctest.h>

#include "tests/support/group_support.h"
#include "tests/support/real_node.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

LoadedConfig auto_job(std::uint32_t devices) {
  auto job = linear_job(devices);
  auto& c = job.config;
  c.batch.policy = "fixed";
  c.batch.rows = 16;
  c.sync.on_peer_loss = "reform";
  c.sync.policy = c.compression.policy = c.sync.collective = "auto";
  return job;
}

SimulateOptions linked(double bytes_per_second, std::uint64_t rounds) {
  SimulateOptions options;
  options.rates = {{{0, 5000}}};
  options.profile = {std::chrono::milliseconds(2), 8000};
  options.link = {std::chrono::milliseconds(1), bytes_per_second};
  options.stop_after.rounds = rounds;
  return options;
}

struct Outcome {
  std::vector<RecordedRound> rounds;  ///< as recorded by device 0
  std::vector<std::vector<float>> parameters;
  std::uint64_t bytes_sent = 0;
  std::uint64_t record_bytes = 0;
  std::uint64_t views = 0;
};

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
    out.bytes_sent += group->node(i).status().bytes_sent.load();
    out.record_bytes += group->node(i).status().record_bytes_trained.load();
  }
  out.views = group->node(0).status().view.load();
  return out;
}

}  // namespace

TEST_CASE("Auto: a slow link makes devices step apart for longer, and all agree on the same model") {
  const Outcome fast = run(auto_job(4), linked(125e6, 60));
  const Outcome slow = run(auto_job(4), linked(125e3, 60));
  for (const Outcome* out : {&fast, &slow}) {
    CHECK(out->rounds.size() >= 60);
    for (const auto& p : out->parameters) CHECK(p == out->parameters[0]);
  }
  const auto& quick = fast.rounds.back().plan.next;
  const auto& patient = slow.rounds.back().plan.next;
  CHECK(patient.steps() > quick.steps());
  // Reported times match the clock.
  const auto& facts = slow.rounds.back().table.facts[0];
  CHECK(facts.sync_seconds < 0.2 * (facts.sync_seconds + facts.measurements[1]));
}

TEST_CASE("Auto: a budget of the stream holds over the whole run") {
  auto job = auto_job(4);
  job.config.settings.set("sync.budget", std::string("0.05 of stream"));
  const Outcome out = run(job, linked(125e6, 80));
  REQUIRE(out.record_bytes > 0);
  CHECK(static_cast<double>(out.bytes_sent) < 0.06 * static_cast<double>(out.record_bytes));
}

TEST_CASE("Auto: what it has learned is part of the agreed state: a device that was killed finds it again") {
  auto options = linked(125e3, 60);
  options.faults = {{.at_s = 1, .kind = Fault::Kind::kill, .device = 1},
                    {.at_s = 3, .kind = Fault::Kind::start, .device = 1}};
  const Outcome out = run(auto_job(3), options);
  CHECK(out.views >= 2);
  std::size_t entered = 0;
  for (std::size_t i = 1; i < out.rounds.size(); ++i)
    if (out.rounds[i].round < out.rounds[i - 1].round) entered = i;
  REQUIRE(entered > 0);
  REQUIRE(entered + 2 < out.rounds.size());
  const auto before = out.rounds[entered - 1].plan.next;
  const auto after = out.rounds[entered + 1].plan.next;
  CHECK(after.steps() * 2 >= before.steps());
  CHECK(after.way.keep_ratio == doctest::Approx(before.way.keep_ratio).epsilon(0.7));
  for (const auto& p : out.parameters) CHECK(p == out.parameters[0]);
}
