// The rounds of a device's decision log that are part of the surviving history.
#include <doctest/doctest.h>

#include "runtime/cli/round_rows.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime::cli;

namespace {

std::string view_line(int view, int lineage, int step) {
  return R"({"view":)" + std::to_string(view) + R"(,"lineage":)" + std::to_string(lineage) + R"(,"step":)" +
         std::to_string(step) + "}\n";
}

/// A round from state `step`, with five rows from `first` on.
std::string round_line(int view, int step, int first) {
  return R"({"view":)" + std::to_string(view) + R"(,"round":0,"step":)" + std::to_string(step) +
         R"(,"facts":[{"interval":{"partition":[0,0],"first":[)" + std::to_string(first) + R"(,0],"next":[)" +
         std::to_string(first + 5) +
         R"(,0],"rows_trained":5,"rows_dropped":0,"non_final_rows":0,"holes":0}}]})" + "\n";
}

std::vector<std::uint64_t> steps_of(const std::string& log, std::uint64_t step) {
  testing::TempDir folder;
  folder.write("decisions.jsonl", log);
  const auto rounds = rounds_in(folder.path().string(), step);
  REQUIRE(rounds);
  std::vector<std::uint64_t> steps;
  for (const RoundRows& round : rounds.value()) steps.push_back(round.step);
  return steps;
}

}  // namespace

TEST_CASE("Rounds: a later view replaces the rounds after the step that it begins at") {
  const std::string log = view_line(1, 0, 0) + round_line(1, 0, 0) + round_line(1, 1, 5);
  CHECK(steps_of(log, 2) == std::vector<std::uint64_t>{1, 2});
  CHECK(steps_of(log + view_line(3, 1, 2) + round_line(3, 2, 10), 3) == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(steps_of(log + view_line(3, 1, 1) + round_line(3, 1, 5), 2) == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("Rounds: the last one before views without this device may have been replaced, and is not listed") {
  const std::string log = view_line(1, 0, 0) + round_line(1, 0, 0) + round_line(1, 1, 5);
  CHECK(steps_of(log + view_line(3, 2, 6) + round_line(3, 6, 30), 7) == std::vector<std::uint64_t>{1, 7});
}
