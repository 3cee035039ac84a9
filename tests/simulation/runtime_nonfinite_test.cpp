// Batches with a non-finite gradient are consumed and counted, without effect on any state.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/conformance/walls_suite.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

/// Three devices with hex rows "TARGET:FEATURES"; each row listed in `breaks` has the target that breaks its
/// batch.
WallsRun fragile_run(std::uint64_t rounds,
                     const std::function<bool(std::size_t device, std::size_t row)>& breaks) {
  WallsRun run = even_run(8, rounds);
  auto& c = run.loaded.config;
  c.decode.format = "hex";
  c.decode.shape = {2};
  c.model.name = "fragile";
  c.train.loss = "mse";
  c.normalize.targets = false;  // a target of 9 breaks the batch
  run.row = [breaks](std::size_t device, std::size_t row) {
    const std::string text = breaks(device, row) ? "9:00ff" : "3:00ff";
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    return std::vector<std::byte>(bytes, bytes + text.size());
  };
  return run;
}

std::uint64_t dropped(const GroupOutcome& out, std::size_t seen_by, std::int32_t partition) {
  return out.partitions[seen_by].at({0, partition}).all_dropped();
}

}  // namespace

TEST_CASE("Non-finite: one device's batch is used up with weight 0, and the others go on") {
  const auto out =
      run_simulated(fragile_run(20, [](auto device, auto row) { return device == 1 && row == 20; }));
  check_agreed(out);
  CHECK(out.steps[0] == 20);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(dropped(out, i, 0) == 0);
    CHECK(dropped(out, i, 1) == 8);
    CHECK(out.partitions[i].at({0, 1}).next.offset == 20 * 8);
  }
  CHECK(out.group_rows[0] == 20 * 24 - 8);
  CHECK(out.rows_trained[1] == 20 * 8 - 8);
  bool flagged = false;
  for (const auto& round : out.rounds) {
    const auto& facts = round.table.facts[1];
    if ((facts.flags & sync::flag_nonfinite) == 0) continue;
    flagged = true;
    CHECK(facts.rows == 0);
    CHECK(round.plan.now.weights[1] == 0);
  }
  CHECK(flagged);
  REQUIRE(out.parameters.size() == 1);
  CHECK(std::isfinite(out.parameters[0]));
}

TEST_CASE("Non-finite: in a round where nobody's batch is finite nothing is applied, and offsets move on") {
  const auto out = run_simulated(fragile_run(20, [](auto, auto row) { return row == 20; }));
  check_agreed(out);
  CHECK(out.steps[0] == 20);
  CHECK(out.group_rows[0] == 19 * 24);  // one step of the state moved only offsets
  for (std::int32_t p = 0; p < 3; ++p) {
    CHECK(dropped(out, 0, p) == 8);
    CHECK(out.partitions[0].at({0, p}).next.offset == 20 * 8);
  }
}

TEST_CASE(
    "Non-finite: with on_nonfinite = stop the device ends and says so, and the others know whom they lost") {
  auto run = fragile_run(20, [](auto device, auto row) { return device == 1 && row == 20; });
  run.loaded.config.train.on_nonfinite = "stop";
  const auto out = run_simulated(run);
  REQUIRE(out.errors[1]);
  CHECK(out.errors[1]->code == ErrorCode::numeric);
  for (const std::size_t i : {0UL, 2UL}) {
    REQUIRE(out.errors[i]);
    CHECK(out.errors[i]->code == ErrorCode::peer_lost);
    CHECK(out.digests[i] == out.digests[1]);
  }
}
