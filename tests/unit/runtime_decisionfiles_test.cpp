// A decision log is bounded from the start: full files get numbers, the oldest are deleted, readers read the
// rest.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "core/rng.h"
#include "runtime/decisions/decision_files.h"
#include "runtime/decisions/decision_log.h"
#include "runtime/decisions/decision_reader.h"
#include "runtime/decisions/plan_replay.h"
#include "tests/support/drawn_decisions.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t bound = 1'200'000;
constexpr std::uint64_t file_bound = bound / 8;
constexpr std::uint64_t line_bound = 4'000;
constexpr std::uint64_t rounds_of_view = 10;

struct Log {
  TempDir folder;
  std::string path = (folder.path() / "decisions.jsonl").string();
  Rng rng{1};
  std::uint64_t views = 0;

  void write_view(DecisionLog& log) {
    ViewRecord view = view_of_three(++views);
    log.enter_view(view);
    for (std::uint64_t round = 0; round < rounds_of_view; ++round) {
      auto table = drawn_table(rng, round);
      for (auto& facts : table.facts)
        facts.plan_hash = sync::policy::hash_of(view.state.last, view.state.table_hash);
      log.write(view.number, round, table,
                sync::policy::plan(table, view.policy, stream_controllers(), view.state));
      log.finish_round(view.state);
    }
  }
  void write_views(std::uint64_t count, std::uint64_t bytes = bound, Recorded recorded = Recorded::rounds) {
    const auto log = open_decision_log(path, bytes, recorded);
    REQUIRE(log);
    for (std::uint64_t i = 0; i < count; ++i) write_view(*log.value());
  }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t all = 0;
    for (const auto& file : decision_files(path)) all += file.bytes;
    return all;
  }
  [[nodiscard]] PlanReplayReport replayed() const {
    const auto report = replay_plans(path, sync::policy::builtin_controllers());
    REQUIRE_MESSAGE(report, report.error().message);
    return report.value();
  }
};

std::size_t rounds_left(DecisionReader& reader) {
  std::size_t rounds = 0;
  while (true) {
    const auto record = reader.next();
    REQUIRE_MESSAGE(record, record.error().message);
    if (!record.value()) return rounds;
    rounds += std::holds_alternative<RoundRecord>(*record.value()) ? 1 : 0;
  }
}

}  // namespace

TEST_CASE("Decision files: all together stay below the bound, and what is left can be made again") {
  Log log;
  const auto writer = open_decision_log(log.path, bound);
  REQUIRE(writer);
  for (int i = 0; i < 120; ++i) {
    log.write_view(*writer.value());
    CHECK(log.bytes() <= bound + line_bound);
    CHECK(read_file(log.path).ends_with("}\n"));  // complete, whenever the process is killed
  }
  const auto files = decision_files(log.path);
  REQUIRE(files.size() > 5);
  CHECK(files.size() <= 8);
  for (const auto& file : files) CHECK(file.bytes < file_bound + line_bound);
  REQUIRE(files.front().number > 2);
  const auto report = log.replayed();
  CHECK(report.proven());
  CHECK(report.rounds > 100);
  REQUIRE(report.notes.size() == 2);
  CHECK(report.notes[0] == log.path + ".1 to ." + std::to_string(files.front().number - 1) +
                               " were deleted: the log has reached log.decisions_max");
  CHECK(contains(report.notes[1], "begins in the middle of view "));
  CHECK(open_decision_log("/nowhere/decisions.jsonl", 1).error().code == ErrorCode::io);
}

TEST_CASE("Decision files: over many files, and lives of the process, no line is lost while there is room") {
  Log log;
  for (int life = 0; life < 10; ++life) log.write_views(4);
  REQUIRE(decision_files(log.path).size() > 4);
  const auto report = log.replayed();
  CHECK(report.proven());
  CHECK(report.rounds == 400);
  CHECK(report.views == 40);
  CHECK(report.notes.empty());
}

TEST_CASE(
    "Decision files: a device that is killed after the rename and before the new file has lost nothing") {
  Log log;
  log.write_views(12);
  const auto before = decision_files(log.path);
  REQUIRE(before.size() > 1);
  fs::rename(log.path, log.path + "." + std::to_string(before.back().number));
  CHECK(log.replayed().rounds == 120);
  log.write_views(3);
  const auto report = log.replayed();
  CHECK(report.proven());
  CHECK(report.rounds == 150);
  CHECK(decision_files(log.path).back().number == before.back().number + 1);
}

TEST_CASE("Decision files: a file that somebody deleted is named, and what is behind it is read") {
  Log log;
  log.write_views(40);
  const auto files = decision_files(log.path);
  REQUIRE(files.size() > 5);
  REQUIRE(files.front().number == 1);
  fs::remove(files[2].path);
  fs::remove(files[3].path);
  auto report = log.replayed();
  CHECK(report.proven());
  CHECK(report.rounds > 100);
  CHECK(report.rounds < 400);
  REQUIRE_FALSE(report.notes.empty());
  CHECK(report.notes[0] == files[2].path + " to .4 are missing");
  fs::remove(log.path);  // the current one: older files are read without it
  CHECK(log.replayed().rounds < report.rounds);
}

TEST_CASE("Decision files: the file before an upgrade and a bound that was lowered") {
  Log log;
  log.write_views(20, 100 * bound);
  REQUIRE(decision_files(log.path).size() == 1);
  fs::rename(log.path, log.path + ".1");  // as left by builds with one older file
  log.write_views(1, bound / 6);
  CHECK(decision_files(log.path).size() == 1);  // it alone exceeds the limit
  CHECK(log.replayed().rounds == rounds_of_view);
  log.write_views(30);
  log.write_views(1, bound / 2);
  CHECK(log.bytes() <= bound / 2 + line_bound);
}

TEST_CASE("Decision files: who reads while a device writes reads what was there when it began") {
  Log log;
  log.write_views(30);
  auto reader = DecisionReader::open(log.path);
  REQUIRE(reader);
  REQUIRE(reader.value().next());
  log.write_views(60);  // every file has been renamed or deleted since
  CHECK(rounds_left(reader.value()) == 300);
  CHECK(reader.value().torn().empty());
}

TEST_CASE("Decision files: with views alone there are no rounds, and the files are as well bounded") {
  Log log;
  log.write_views(20, bound, Recorded::views);
  const auto report = log.replayed();
  CHECK(report.views == 20);
  CHECK(report.rounds == 0);
  CHECK_FALSE(report.proven());
  log.write_views(400, bound / 30, Recorded::views);
  CHECK(log.bytes() <= bound / 30 + line_bound);
  log.write_views(1);  // another path, and back
  log.write_views(1, bound, Recorded::views);
  CHECK(log.replayed().rounds == rounds_of_view);
}

TEST_CASE(
    "Decision files: if a full file cannot get its number, it stays as it is and nothing more is written") {
  Log log;
  log.folder.write("decisions.jsonl.1/in-the-way", "x");
  log.write_views(12);
  CHECK(log.bytes() < file_bound + line_bound);
  CHECK(read_file(log.path).ends_with("}\n"));
  CHECK(log.replayed().proven());
}

TEST_CASE("Decision files: names that are not ours are left alone") {
  Log log;
  for (const char* name :
       {"decisions.jsonl.01", "decisions.jsonl.x", "decisions.jsonl.", "decisions.jsonl.2.gz",
        "other.jsonl.1", "decisions.jsonl.99999999999999999999999"})
    log.folder.write(name, "not a line\n");
  log.write_views(2);
  CHECK(decision_files(log.path).size() == 1);
  CHECK(log.replayed().rounds == 20);
}
