// sync.policy = "auto": the README's two devices, long after the loss has converged.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/group_support.h"
#include "tests/support/places.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

TEST_CASE(
    "Auto: two devices of the README agree seldom once their loss is small, and find no streams that "
    "differ") {
  auto job = load_config({.file = source_path("examples/sensors-json/device.toml"),
                          .sets = {"job.devices=2", "model.name=linear"}});
  REQUIRE(job.usable());
  SimulateOptions options;
  options.rates = {{{0, 200}}, {{0, 50}}};
  options.profile = {std::chrono::milliseconds(1), 8000};
  options.data = source_path("examples/sensors-json/readings.jsonl");
  options.stop_after.seconds = 400;
  std::vector<RecordedRound> rounds;
  SimulatedParts parts;
  parts.decisions = [&](std::size_t device) -> std::unique_ptr<DecisionLog> {
    if (device == 0) return std::make_unique<RecordingDecisions>(rounds);
    return make_null_decision_log();
  };
  auto group = build_group(job, options, std::move(parts));
  run_to_end(*group);
  std::uint64_t sent = 0, records = 0;
  for (std::size_t i = 0; i < group->size(); ++i) {
    sent += group->node(i).status().bytes_sent.load();
    records += group->node(i).status().record_bytes_trained.load();
  }
  const auto says = [](const RecordedRound& round, const char* words) {
    return round.plan.why.find(words) != std::string::npos;
  };
  const auto differ =
      std::ranges::count_if(rounds, [&](const auto& round) { return says(round, "streams differ"); });
  const auto low_rank =
      std::ranges::count_if(rounds, [&](const auto& round) { return says(round, "low rank"); });
  REQUIRE(rounds.size() > 100);
  CAPTURE(rounds.size());
  CAPTURE(rounds.back().plan.why);
  CAPTURE(differ);
  CHECK(low_rank == 0);
  CHECK(static_cast<double>(differ) < 0.02 * static_cast<double>(rounds.size()));
  CHECK(static_cast<double>(sent) < 0.2 * static_cast<double>(records));
  CHECK(std::ranges::any_of(rounds, [](const auto& round) { return round.plan.next.steps() == 32; }));
  CHECK(std::ranges::any_of(rounds,
                            [&](const auto& round) { return says(round, "the loss no longer falls"); }));
}
