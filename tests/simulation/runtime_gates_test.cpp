// Compression gates: the facts of a round decide its own exchange.
#include <doctest/doctest.h>

#include "tests/support/group_run.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using sync::policy::Mode;

namespace {

LoadedConfig job_with(const std::string& compression) {
  auto job = linear_job(3);
  auto& c = job.config;
  c.batch.policy = "fixed";
  c.batch.rows = 16;
  c.sync.policy = "every";
  c.compression.policy = compression;
  return job;
}

LoadedConfig two_point(double delta) {
  auto job = job_with("two-point");
  job.config.settings.set("compression.two_point.keep", 0.1);
  job.config.settings.set("compression.two_point.delta", delta);
  job.config.settings.set("compression.two_point.gain", std::string("squared"));
  job.config.settings.set("compression.two_point.half_life", 10.0);
  return job;
}

std::size_t compressed(const Outcome& out) {
  return static_cast<std::size_t>(std::ranges::count_if(out.rounds, [](const RecordedRound& round) {
    return round.plan.now.way.value_or(sync::policy::Way{}).compressor == "topk";
  }));
}

}  // namespace

TEST_CASE("Gates: one that is always open is bit for bit what topk of its share is") {
  const Outcome gated = run(two_point(1), fast(40));
  auto fixed = job_with("fixed");
  fixed.config.settings.set("compression.compressor", std::string("topk"));
  fixed.config.settings.set("compression.keep", 0.1);
  fixed.config.settings.set("compression.momentum", std::string("group"));
  const Outcome topk = run(fixed, fast(40));
  CHECK(gated.step == 40);
  CHECK(compressed(gated) == rounds_of(gated, Mode::gradients));
  CHECK(gated.parameters == topk.parameters);
  CHECK(gated.momentum == topk.momentum);
}

TEST_CASE("Gates: one that never opens is bit for bit what whole gradients are") {
  const Outcome gated = run(two_point(0), fast(40));
  const Outcome whole = run(job_with("none"), fast(40));
  CHECK(compressed(gated) == 0);
  CHECK(gated.parameters == whole.parameters);
  CHECK(gated.momentum == whole.momentum);
}

TEST_CASE("Gates: that open and close leave all devices with the same state, and nothing is lost for good") {
  // The gains of a linear model vary around this value.
  std::size_t switches = 0;
  const Outcome out = run(two_point(0.5), fast(200));
  std::string last;
  for (const auto& round : out.rounds) {
    const std::string now = round.plan.now.way ? round.plan.now.way->compressor : "";
    switches += !now.empty() && !last.empty() && now != last ? 1 : 0;
    if (!now.empty()) last = now;
  }
  MESSAGE("switches: ", switches, ", compressed: ", compressed(out));
  CHECK(out.step == 200);
  for (const auto& parameters : out.parameters) CHECK(parameters == out.parameters[0]);
}
