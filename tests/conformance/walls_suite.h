#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/wiring/simulation.h"
#include "tests/support/group_support.h"
#include "tests/support/real_node.h"

/// Extension points of the product: test-only parts run with the unchanged Worker and SyncSession, over every
/// transport.
namespace rivulet::testing {

/// Results of a group's run, independent of the transport.
struct GroupOutcome {
  std::vector<std::string> digests;  ///< by device
  std::vector<std::uint64_t> steps;
  std::vector<std::uint64_t> rows_trained;  ///< counted by the owners
  std::vector<std::uint64_t> rows_refused;  ///< same: dropped as not finite
  std::vector<std::uint64_t> group_rows;
  std::vector<std::uint64_t> rows_consumed;
  std::vector<std::uint64_t> rows_waiting;
  std::vector<std::optional<Error>> errors;
  std::vector<std::map<PartitionId, runtime::PartitionProgress>> partitions;
  std::vector<RecordedRound> rounds;  ///< as recorded by device 0
  std::vector<float> parameters;      ///< of device 0
  std::uint64_t copies_to_host = 0;   ///< of a copying device 0
  std::uint64_t early_used = 0;       ///< by device 0
  std::uint64_t early_wasted = 0;
};

struct WallsRun {
  runtime::LoadedConfig loaded;
  runtime::StopAfter stop_after;
  std::size_t records = 4000;
  bool copying_device = false;
  std::function<std::vector<std::byte>(std::size_t device, std::size_t index)> row;  ///< null = linear rows
};
/// Runs a group to its end over one kind of transport.
using RunGroup = std::function<GroupOutcome(const WallsRun&)>;

GroupOutcome run_simulated(const WallsRun& run);
GroupOutcome run_on_threads(const WallsRun& run, const std::function<sync::Connect(std::size_t)>& connect_of);

/// Parameters after rounds in which every device makes `steps_of_round` local steps of `rows` rows from the
/// agreed parameters, and the mean of their deltas is added: without worker, session or transport.
std::vector<float> local_sgd(const WallsRun& run, const std::vector<std::size_t>& steps_of_round,
                             std::size_t rows);

inline WallsRun walls_run(const std::string& policy, std::uint32_t devices = 3, std::uint64_t rounds = 30) {
  WallsRun run;
  run.loaded = linear_job(devices);
  run.loaded.config.batch.policy = policy;
  run.stop_after.rounds = rounds;
  return run;
}

/// `rows` from every device, until `rounds`: the reference for other runs.
inline WallsRun even_run(std::uint32_t rows, std::uint64_t rounds) {
  WallsRun run = walls_run("even_rows", 3, rounds);
  run.loaded.config.batch.rows = rows;
  return run;
}

inline void check_agreed(const GroupOutcome& out) {
  for (std::size_t i = 0; i < out.digests.size(); ++i) {
    INFO("device ", i, ": ", out.errors[i] ? out.errors[i]->message : "no error");
    CHECK_FALSE(out.errors[i]);
    CHECK(out.digests[i] == out.digests[0]);
    CHECK(out.steps[i] == out.steps[0]);
    CHECK(out.group_rows[i] == out.group_rows[0]);
  }
}

/// Relative L2 distance between the final parameters of two groups.
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0;
  double size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  REQUIRE(size > 0);
  return std::sqrt(difference / size);
}
inline double distance(const GroupOutcome& a, const GroupOutcome& b) {
  return distance(a.parameters, b.parameters);
}

inline void walls_suite(const RunGroup& run_group) {
  SUBCASE("scripted batches, zero rows included, give the bits they give everywhere") {
    const auto run = walls_run("scripted", 4, 60);
    const auto out = run_group(run);
    check_agreed(out);
    CHECK(out.steps[0] == 60);
    CHECK(out.digests[0] == run_simulated(run).digests[0]);
    bool zero_seen = false;
    for (const auto& r : out.rounds)
      for (const auto& f : r.table.facts) zero_seen = zero_seen || f.rows == 0;
    CHECK(zero_seen);
  }
  SUBCASE("a collective that fails after encode leaves the state as it was and the rows to their owner") {
    const auto out = run_group(walls_run("fails_in_round_5"));
    int planted = 0;
    for (std::size_t i = 0; i < out.errors.size(); ++i) {
      REQUIRE(out.errors[i]);
      INFO(out.errors[i]->message);
      // The first device that fails closes its view, which others may detect before their own failure.
      const bool mine = out.errors[i]->message.find("planted failure") != std::string::npos;
      planted += mine ? 1 : 0;
      CHECK((mine || out.errors[i]->code == ErrorCode::peer_lost));
      CHECK(out.digests[i] == out.digests[0]);
      CHECK(out.steps[i] == out.steps[0]);
      std::uint64_t folded = 0;
      for (const auto& [id, p] : out.partitions[i]) folded += p.trained;
      CHECK(folded == out.group_rows[i]);
      CHECK(out.rows_consumed[i] == out.rows_trained[i] + out.rows_waiting[i]);
    }
    CHECK(out.steps[0] == 4);  // rounds 1..4 applied: round 0 had no rows, round 5 failed
    CHECK(planted >= 1);
    CHECK(out.digests[0] == run_simulated(even_run(8, 4)).digests[0]);
  }
  SUBCASE(
      "contributions that left for a plan that came otherwise: nothing of them is added, and rounds go on") {
    const auto out = run_group(walls_run("holds_every_seventh", 3, 40));
    check_agreed(out);
    CHECK(out.steps[0] == 40);
    CHECK(out.early_used > 0);
    CHECK(out.early_wasted >= 5);
    CHECK(out.digests[0] == run_simulated(even_run(8, 40)).digests[0]);
  }
  SUBCASE("own steps: intervals stay pending, then are announced") {
    auto run = even_run(8, 10);
    run.loaded.config.sync.policy = "periodic";
    run.loaded.config.settings.set("sync.local_steps", std::int64_t{3});
    const auto out = run_group(run);
    check_agreed(out);
    CHECK(out.steps[0] == 10);
    std::vector<std::size_t> steps(10, 3);
    steps[0] = 1;  // at the start of a view
    CHECK(distance(out.parameters, local_sgd(run, steps, 8)) <= 1e-5);
    std::size_t round = 0;
    for (const auto& r : out.rounds) {
      const auto& f = r.table.facts[0];
      if (r.plan.now.mode != sync::policy::Mode::delta) continue;
      const std::uint32_t rows = round++ == 0 ? 8 : 24;
      CHECK(f.rows == rows);
      CHECK(f.interval.rows_trained == rows);
      CHECK(f.interval.next.offset - f.interval.first.offset == rows);
    }
    CHECK(round == 10);
    CHECK(out.group_rows[0] == 3 * 8 * 28);
    for (const auto& [id, p] : out.partitions[1])
      CHECK(p.next.offset == static_cast<std::int64_t>(p.trained));
  }
  SUBCASE("compressors that keep what they leave out, round it, or forget it") {
    for (const char* compressor : {"exact_topk", "coarse_topk", "halves"}) {
      INFO(compressor);
      const auto run = walls_run(compressor, 3, 40);
      const auto out = run_group(run);
      check_agreed(out);
      CHECK(out.steps[0] == 40);
      CHECK(out.early_used > 10);  // slots of all compressors leave with the facts
      CHECK(out.digests[0] == run_simulated(run).digests[0]);
    }
  }
  SUBCASE("a collective of two dependent phases") {
    const auto out = run_group(walls_run("two_phases", 3, 20));
    check_agreed(out);
    CHECK(out.steps[0] == 20);
    CHECK(distance(out, run_simulated(even_run(8, 20))) <= 1e-5);
  }
  SUBCASE("a device whose gradients need a copy to be seen by the host") {
    auto run = walls_run("scripted", 3, 20);
    const auto plain = run_simulated(run);
    run.copying_device = true;
    run.loaded.config.model.name = "copying_linear";
    const auto out = run_group(run);
    check_agreed(out);
    CHECK(out.copies_to_host > 0);
    CHECK(out.digests[0] == plain.digests[0]);
  }
  SUBCASE("a decoder, a policy and a model added by adding files only") {
    auto run = walls_run("scripted", 2, 30);
    run.loaded.config.decode.format = "hex";
    run.loaded.config.decode.shape = {2};
    run.loaded.config.model.name = "bias";
    run.loaded.config.train.loss = "mse";
    run.loaded.config.normalize.targets = false;
    run.loaded.config.settings.set("train.optimizer.momentum", 0.0);
    run.row = [](std::size_t, std::size_t) {
      const std::string text = "3:00ff";
      const auto* p = reinterpret_cast<const std::byte*>(text.data());
      return std::vector<std::byte>(p, p + text.size());
    };
    const auto out = run_group(run);
    check_agreed(out);
    REQUIRE(out.parameters.size() == 1);
    CHECK(out.parameters[0] > 2.5F);  // every target is 3
    CHECK(out.parameters[0] <= 3.0F);
  }
}

}  // namespace rivulet::testing
