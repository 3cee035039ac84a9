// Invalid values: a device's bad rows do not cost its peers a row, and counters show the fate of each.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "stream/open.h"
#include "tests/conformance/walls_suite.h"
#include "tests/support/group_run.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

/// Three devices with eight rows per batch; the first has some spoiled rows.
WallsRun spoiled_run(const std::string& when, std::uint64_t rounds,
                     const std::function<float(std::size_t row, float feature)>& spoil) {
  WallsRun run = even_run(8, rounds);
  auto& c = run.loaded.config;
  c.train.clip_usual = false;  // which would mask most of the effect
  c.batch.policy = "fixed";
  c.batch.rows = 8;
  c.sync.policy = when == "overlap" ? "periodic" : when;
  c.settings.set("sync.local_steps", std::int64_t{5});
  if (when == "overlap") c.settings.set("sync.overlap", std::string("always"));
  run.row = [spoil, seed = c.job.seed](std::size_t device, std::size_t row) {
    auto bytes = linear_row(seed, device, row, 8, 4);
    float feature = 0;
    std::memcpy(&feature, bytes.data() + 3 * sizeof feature, sizeof feature);
    if (device == 0) feature = spoil(row, feature);
    std::memcpy(bytes.data() + 3 * sizeof feature, &feature, sizeof feature);
    return bytes;
  };
  return run;
}

/// All devices have equal states, the model is finite, and the pages match the ledger.
void check_counted(const GroupOutcome& out) {
  check_agreed(out);
  for (const float x : out.parameters) CHECK(std::abs(x) < 1e3F);
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    const auto& ledger = out.partitions[i].at({0, static_cast<std::int32_t>(i)});
    CHECK(out.rows_trained[i] == ledger.trained);
    CHECK(out.rows_refused[i] == ledger.all_dropped());
    CHECK(ledger.adds_up());
  }
}

std::uint64_t flagged(const GroupOutcome& out, std::size_t device) {
  std::uint64_t n = 0;
  for (const auto& round : out.rounds) {
    const auto& facts = round.table.facts[device];
    if ((facts.flags & sync::flag_nonfinite) == 0) continue;
    ++n;
    CHECK(facts.rows == 0);
    CHECK(facts.loss_sum == 0);
    CHECK(round.plan.now.weights[device] == 0);
  }
  return n;
}

constexpr std::size_t rows_at_once = 2100;

/// Many waiting rows, then one at a time.
std::unique_ptr<stream::RecordSource> running_dry(std::uint64_t seed, std::size_t device,
                                                  const Clock& clock) {
  const PartitionId partition{0, static_cast<std::int32_t>(device)};
  std::vector<stream::ScriptedRecord> script;
  for (std::size_t i = 0; i < rows_at_once + 100; ++i) {
    const auto late = i < rows_at_once ? 0 : i - rows_at_once;
    script.push_back({TimePoint{} + std::chrono::milliseconds(100 * late), partition,
                      static_cast<std::int64_t>(i), linear_row(seed, device, i, 64, 0), false});
  }
  return stream::open_scripted_source({partition}, std::move(script), clock);
}

}  // namespace

TEST_CASE("Values: of a reading whose square is infinite only the batch is lost, of its own device") {
  for (const char* when : {"every", "periodic", "overlap"}) {
    CAPTURE(when);
    const auto out = run_simulated(
        spoiled_run(when, 10, [](std::size_t row, float x) { return row % 40 == 20 ? 1e25F : x; }));
    check_counted(out);
    CHECK(out.rows_refused[0] > 0);
    const auto all = out.rows_trained[0] + out.rows_refused[0];
    CHECK(out.rows_refused[0] % 8 == 0);
    CHECK(out.rows_refused[0] / 8 <= all / 8 / 5);  // every fifth batch, some of them not synchronized yet
    CHECK(out.rows_refused[0] / 8 + 3 >= all / 8 / 5);
    CHECK(out.rows_refused[1] == 0);
    CHECK(out.rows_refused[2] == 0);
  }
}

TEST_CASE("Values: where features are normalized, such a reading costs no row, and no accuracy") {
  for (const char* when : {"every", "periodic", "overlap"}) {
    CAPTURE(when);
    const auto out_of = [&](float reading) {
      auto run = spoiled_run(when, 60, [reading](std::size_t row, float x) {
        return reading != 0 && row % 40 == 20 ? reading : x;
      });
      run.loaded.config.decode.normalize = true;
      return run_simulated(run);
    };
    const auto calm = out_of(0);
    for (const float reading : {1e25F, -1e30F, 65'535.0F}) {
      CAPTURE(reading);
      const auto out = out_of(reading);
      check_counted(out);
      for (std::size_t i = 0; i < 3; ++i) CHECK(out.rows_refused[i] == 0);
      double apart = 0;
      double size = 0;
      for (std::size_t i = 0; i < calm.parameters.size(); ++i) {
        apart += std::pow(out.parameters[i] - calm.parameters[i], 2);
        size += std::pow(calm.parameters[i], 2);
      }
      CHECK(apart < 0.1 * size);
    }
  }
}

TEST_CASE("Values: a finite gradient that would throw the model away is not stepped with") {
  for (const char* when : {"every", "periodic", "overlap"}) {
    CAPTURE(when);
    // The first rounds are good: the explosion check has a reference.
    const auto out = run_simulated(spoiled_run(
        when, 12, [](std::size_t row, float x) { return row > 50 && row % 40 == 20 ? 1e10F : x; }));
    check_counted(out);
    CHECK(out.rows_refused[0] > 0);
    CHECK(out.rows_refused[1] + out.rows_refused[2] == 0);
  }
}

TEST_CASE("Values: own steps that go too far are not contributed, and the device goes on from the group") {
  for (const char* when : {"periodic", "overlap"}) {
    CAPTURE(when);
    const auto out = run_simulated(spoiled_run(
        when, 20, [](std::size_t row, float x) { return row >= 224 && row < 240 ? 300 * x : x; }));
    check_counted(out);
    CHECK(flagged(out, 0) == 1);
    CHECK(flagged(out, 1) == 0);
    CHECK(out.rows_refused[0] >= 40);  // all steps since the last synchronization, including those made ahead
    CHECK(out.rows_refused[0] <= 80);
    CHECK(out.rows_trained[0] > 600);
    CHECK(out.rows_refused[1] + out.rows_refused[2] == 0);
  }
}

TEST_CASE("Values: a step of few rows, behind steps of many, goes as far as few rows may") {
  for (const char* when : {"periodic", "every"}) {
    CAPTURE(when);
    auto job = linear_job(2);
    auto& c = job.config;
    c.decode.shape = {64};
    c.model.classes = 1;
    c.train.loss = "mse";
    c.train.lr = 0.1;
    c.settings.set("train.optimizer.momentum", 0.0);
    c.settings.set("train.lr_scaling.rule", std::string("sqrt"));
    c.sync.policy = when;
    c.settings.set("sync.local_steps", std::int64_t{16});
    std::vector<RecordedRound> rounds;
    runtime::SimulatedParts parts;
    parts.source = [&](std::size_t device, const Clock& clock) {
      return running_dry(c.job.seed, device, clock);
    };
    parts.decisions = [&](std::size_t device) -> std::unique_ptr<runtime::DecisionLog> {
      if (device == 0) return std::make_unique<RecordingDecisions>(rounds);
      return runtime::make_null_decision_log();
    };
    SimulateOptions options = fast(0);
    options.stop_after = {.seconds = 20};
    auto group = build_group(job, options, std::move(parts));
    run_to_end(*group);
    CHECK(group->node(0).state().rows > 2 * rows_at_once);
    double worst = 0;
    std::uint32_t largest = 0;
    for (const auto& round : rounds)
      for (const auto& facts : round.table.facts) {
        CHECK((facts.flags & sync::flag_nonfinite) == 0);
        largest = std::max(largest, facts.rows);
        if (facts.rows > 0) worst = std::max(worst, facts.loss_sum / facts.rows);
      }
    CHECK(largest >= 128);
    CHECK(worst < 300);  // initially it is 64
    for (const float x : group->node(0).state().model.parameters().as<float>()) CHECK(std::abs(x) < 10);
  }
}
