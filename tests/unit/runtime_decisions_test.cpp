#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/rng.h"
#include "runtime/decision_log.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using Json = nlohmann::json;

namespace {

const sync::policy::PolicyEntry& stream_law() {
  for (const auto* entry : sync::policy::builtin_policies())
    if (entry->name == "stream") return *entry;
  FAIL("no policy stream");
  return *sync::policy::builtin_policies()[0];
}

/// A table such as three devices make: numbers with all their digits.
sync::FactsTable drawn_table(Rng& rng, std::uint64_t step) {
  sync::FactsTable table;
  table.facts.resize(3);
  table.sections.resize(3);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    sync::Facts& f = table.facts[rank];
    f.rank = rank;
    f.step = step;
    f.agreed_rows = 100 * step;
    f.stop_at_rows = 2000;
    f.rows = static_cast<std::uint32_t>(rng.below(40));
    f.stream_rate = 1000 * rng.uniform();
    f.queue_rows = rng.below(50);
    f.compute_seconds = 0.05 * rng.uniform();
    f.rows_max = 1024;
    f.flags = rng.below(8) == 0 ? sync::flag_incomplete : 0U;
  }
  return table;
}

sync::FactsTable table_of(const Json& line) {
  sync::FactsTable table;
  table.sections.resize(line["facts"].size());
  for (const auto& j : line["facts"]) {
    sync::Facts f;
    f.rank = static_cast<std::uint32_t>(table.facts.size());
    f.step = j["step"];
    f.agreed_rows = j["agreed_rows"];
    f.stop_at_step = j["stop_at_step"];
    f.stop_at_rows = j["stop_at_rows"];
    f.rows = j["rows"];
    f.rows_since_sync = j["rows_since_sync"];
    f.stream_rate = j["stream_rate"];
    f.queue_rows = j["queue_rows"];
    f.compute_seconds = j["compute_s"];
    f.rows_max = j["rows_max"];
    f.flags = j["flags"];
    table.facts.push_back(f);
  }
  return table;
}

}  // namespace

TEST_CASE("Decision log: the plans come out of the recorded facts again, to the last bit, the end too") {
  const TempDir folder;
  const std::string path = (folder.path() / "decisions.jsonl").string();
  sync::policy::PolicyConfig config;
  config.contribution_bytes = 4096;
  {
    const auto log = open_decision_log(path, 1 << 20);
    REQUIRE(log);
    Rng rng(7);
    sync::policy::PolicyState state;
    for (std::uint64_t round = 0; round < 30; ++round) {
      const auto table = drawn_table(rng, round);
      log.value()->write(5, round, table, sync::policy::plan(table, config, stream_law(), state));
    }
  }
  std::istringstream lines(read_file(path));
  sync::policy::PolicyState state;
  std::uint64_t rounds = 0;
  bool stopped = false;
  for (std::string text; std::getline(lines, text); ++rounds) {
    const Json line = Json::parse(text);
    CHECK(line["view"] == 5);
    CHECK(line["round"] == rounds);
    const auto again = sync::policy::plan(table_of(line), config, stream_law(), state);
    CHECK(sync::policy::hash_of(again) == line["plan"]["hash"].get<std::uint64_t>());
    stopped = stopped || again.stop;
  }
  CHECK(rounds == 30);
  CHECK(stopped);
}

TEST_CASE("Decision log: it is bounded, and the lines before the newest file are in the one beside it") {
  const TempDir folder;
  const std::string path = (folder.path() / "decisions.jsonl").string();
  const auto log = open_decision_log(path, 20'000);
  REQUIRE(log);
  Rng rng(1);
  for (std::uint64_t round = 0; round < 100; ++round) {
    log.value()->write(1, round, drawn_table(rng, round), {});
    CHECK(read_file(path).ends_with("}\n"));  // whole, whenever the process is killed
    CHECK(std::filesystem::file_size(path) < 25'000);
  }
  CHECK(std::filesystem::exists(path + ".1"));
  CHECK(std::filesystem::file_size(path + ".1") < 25'000);
  CHECK_FALSE(std::filesystem::exists(path + ".2"));
  CHECK(open_decision_log("/nowhere/decisions.jsonl", 1).error().code == ErrorCode::io);
}

TEST_CASE("Decision log: a line that a killed process did not finish does not spoil the next one") {
  const TempDir folder;
  const std::string path = (folder.path() / "decisions.jsonl").string();
  Rng rng(1);
  const std::string torn = decision_line(1, 1, drawn_table(rng, 1), {});
  for (const std::size_t left : {std::size_t{1}, torn.size() / 2, torn.size(), std::size_t{0}}) {
    CAPTURE(left);
    const std::string whole = decision_line(1, 0, drawn_table(rng, 0), {}) + "\n";
    folder.write("decisions.jsonl", whole + torn.substr(0, left));
    {
      const auto log = open_decision_log(path, 1'000'000);
      REQUIRE(log);
      log.value()->write(2, 0, drawn_table(rng, 0), {});
    }
    std::istringstream lines(read_file(path));
    std::vector<std::uint64_t> views;
    for (std::string line; std::getline(lines, line);) {
      const auto parsed = Json::parse(line, nullptr, false);
      CHECK(parsed.is_object());
      if (parsed.is_object()) views.push_back(parsed["view"]);
    }
    CHECK(views == std::vector<std::uint64_t>{1, 2});
  }
  for (const std::string start : {"", "{}\n"}) {  // a disk may leave a lot of nothing behind the last line
    folder.write("decisions.jsonl", start + std::string(200'000, '\0'));
    REQUIRE(open_decision_log(path, 1'000'000));
    CHECK(read_file(path) == start);
  }
}
