#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/digest.h"
#include "core/rng.h"
#include "runtime/decisions/decision_log.h"
#include "runtime/decisions/plan_replay.h"
#include "runtime/decisions/round_explanation.h"
#include "tests/support/drawn_decisions.h"
#include "tests/support/effort.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using Json = nlohmann::json;

namespace {

/// The log of `rounds` rounds of a view.
void write_view(DecisionLog& log, ViewRecord view, std::uint64_t rounds, Rng& rng) {
  log.enter_view(view);
  sync::policy::PolicyState& state = view.state;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    auto table = drawn_table(rng, round);
    for (auto& facts : table.facts) facts.plan_hash = sync::policy::hash_of(state.last, state.table_hash);
    log.write(view.number, round, table, sync::policy::plan(table, view.policy, stream_controllers(), state));
    log.finish_round(state);
  }
}

Result<PlanReplayReport> replayed(const std::string& path) {
  return replay_plans(path, sync::policy::builtin_controllers());
}

std::vector<std::string> lines_of(const std::string& path) {
  std::istringstream in(read_file(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("Decision log: the plans come out of the recorded facts again, to the last bit, the end too") {
  const TempDir folder;
  const std::string path = (folder.path() / "decisions.jsonl").string();
  {
    const auto log = open_decision_log(path, 1 << 20);
    REQUIRE(log);
    Rng rng(7);
    write_view(*log.value(), view_of_three(5), 30, rng);
    write_view(*log.value(), view_of_three(6), 10, rng);
  }
  const auto report = replayed(path);
  REQUIRE_MESSAGE(report, report.error().message);
  CHECK(report.value().proven());
  CHECK(report.value().rounds == 40);
  CHECK(report.value().views == 2);
  CHECK(report.value().notes.empty());
  CHECK(round_in(lines_of(path)[30]).plan.now.stop);
}

TEST_CASE("Decision log: what a changed fact, plan, line or file is, is said with its line") {
  const TempDir folder;
  const std::string path = (folder.path() / "decisions.jsonl").string();
  {
    const auto log = open_decision_log(path, 1 << 20);
    Rng rng(3);
    write_view(*log.value(), view_of_three(2), 9, rng);
  }
  auto lines = lines_of(path);
  REQUIRE(lines.size() == 10);
  const auto say = [&](const std::vector<std::string>& changed) {
    folder.write("decisions.jsonl", joined(changed));
    const auto report = replayed(path);
    if (!report) return report.error().message;
    const auto& found = report.value().difference;
    if (found)
      return found->place + ", round " + std::to_string(found->round) + ", " + found->what.field + ": " +
             found->what.recorded + " / " + found->what.computed;
    return report.value().proven() ? std::string("proven")
                                   : std::to_string(report.value().unchecked) + " unchecked";
  };
  CHECK(say(lines) == "proven");
  auto changed = lines;
  RoundRecord round = round_in(lines[4]);
  const std::uint32_t asked = round.plan.next.rows[1];
  SUBCASE("a rate") {
    round.table.facts[1].stream_rate += 100;
    changed[4] = decision_line(round);
    CHECK(contains(say(changed), path + ": line 5, round 3, next.rows: ["));
    CHECK(contains(say(changed), "," + std::to_string(asked) + ","));
  }
  SUBCASE("a plan") {
    ++round.plan.next.rows[1];
    changed[4] = decision_line(round);
    const std::string said = say(changed);
    CHECK(contains(said, "line 5, round 3, next.rows: ["));
    CHECK(contains(said, "," + std::to_string(asked + 1) + ","));
    CHECK(contains(said, "," + std::to_string(asked) + ","));
  }
  SUBCASE("a hash") {
    ++round.plan_hash;
    changed[4] = decision_line(round);
    CHECK(contains(say(changed), "line 5, round 3, hash: " + std::to_string(round.plan_hash) + " / "));
  }
  SUBCASE("words that no hash covers") {
    round.plan.why = "because";
    changed[4] = decision_line(round);
    CHECK(contains(say(changed), "round 3, why: \"because\" / \"batch = rate * tick\""));
  }
  SUBCASE("one digit, and no new checksum") {
    char& digit = changed[4][changed[4].find("\"rows\":") + 7];
    digit = digit == '1' ? '2' : '1';
    CHECK(contains(say(changed), path + ": line 5: its checksum is wrong"));
  }
  SUBCASE("a line less") {
    changed.erase(changed.begin() + 4);
    CHECK(contains(say(changed),
                   path + ": line 5: found round 4, but round 3 of view 2 is next: lines are missing"));
  }
  SUBCASE("the whole of it twice") {
    changed.insert(changed.end(), lines.begin(), lines.end());
    CHECK(contains(say(changed), path + ": line 11: view 2 begins a second time"));
  }
  SUBCASE("no line of a view") {
    changed.erase(changed.begin());
    CHECK(say(changed) == "9 unchecked");
  }
  SUBCASE("garbage") {
    changed[4] = "not a line";
    CHECK(contains(say(changed), path + ": line 5: not a line of a decision log"));
  }
  SUBCASE("a version as deep as its line is long") {
    const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
    changed[0] = resealed(changed[0], "\"version\":11", "\"version\":" + deep);
    CHECK(contains(say(changed), path + ": line 1: version that is not a number"));
  }
  SUBCASE("a newer version") {
    ViewRecord view = std::get<ViewRecord>(parse_decision_line(lines[0]).value());
    changed[0] = resealed(lines[0], "\"version\":11", "\"version\":12");
    CHECK(contains(say(changed), path + ": line 1: version 12, this build reads 11"));
    view.policy.batch_policy = "magic";
    changed[0] = decision_line(view);
    CHECK(contains(say(changed), "line 1: batch.policy \"magic\" is not in this build"));
  }
  SUBCASE("a last line cut short is left out, and said") {
    changed.back().resize(changed.back().size() / 2);
    folder.write("decisions.jsonl", joined(changed).substr(0, joined(changed).size() - 1));
    const auto report = replayed(path);
    REQUIRE(report);
    CHECK(report.value().rounds == 8);
    REQUIRE(report.value().notes.size() == 1);
    CHECK(contains(report.value().notes[0], path + ": line 10 is incomplete"));
  }
  SUBCASE("a line that never ends") {
    folder.write("decisions.jsonl", std::string(decision_line_max_bytes + 10, '['));
    CHECK(contains(replayed(path).error().message, path + ": line 1: longer than "));
  }
  SUBCASE("no file") {
    CHECK(replayed(path + ".not").error().code == ErrorCode::io);
  }
}

TEST_CASE("Decision log: in words, who brought how many rows, who was waited for, and why") {
  Rng rng(5);
  ViewRecord view = view_of_three(1);
  RoundRecord rounds[2];
  for (std::uint64_t i = 0; i < 2; ++i) {
    rounds[i].view = 1;
    rounds[i].round = i;
    rounds[i].table = drawn_table(rng, i);
    for (auto& f : rounds[i].table.facts) f.flags = 0;
  }
  auto& facts = rounds[0].table.facts;
  for (auto& f : facts) f.rows = 10, f.queue_rows = 0, f.compute_seconds = 0.02, f.rows_max = 64;
  facts[0].stream_rate = 500;
  facts[1].stream_rate = 10'000;
  facts[2].stream_rate = 0;
  rounds[0].plan = sync::policy::plan(rounds[0].table, view.policy, stream_controllers(), view.state);
  auto& after = rounds[1].table.facts;
  for (auto& f : after) f.wait_seconds = 0.03, f.compute_seconds = 0.005, f.sync_seconds = 0.1;
  after[0].rows = 40, after[1].rows = 64, after[2].rows = 0;
  after[0].wait_seconds = 0.08;
  after[1].sync_seconds = 0.003;
  rounds[1].plan = sync::policy::plan(rounds[1].table, view.policy, stream_controllers(), view.state);
  const auto story = explain_round(view, &rounds[0], rounds[1], nullptr);
  std::string said;
  for (const auto& sentence : story.sentences) said += sentence + "\n";
  CAPTURE(said);
  CHECK(contains(said, "The gradients of 104 rows were averaged"));
  CHECK(contains(said, "Each device sent all parameters uncompressed, summed by gather: a payload of"));
  CHECK(contains(said, "a was assigned 40 rows: 0 rows waiting, 500.0 rows/s arriving, tick of 100 ms."));
  CHECK(
      contains(said,
               "b was assigned 64 rows: 0 rows waiting, 10000.0 rows/s arriving, tick of 100 ms; limited by "
               "buffer.rows."));
  CHECK(contains(said,
                 "c was assigned 0 rows: 0 rows waiting, 0.0 rows/s arriving, tick of 100 ms: it does not "
                 "wait for rows."));
  CHECK(contains(said,
                 "a was ready last, 85 ms after the previous round: 80 ms waiting for rows, 5.0 ms "
                 "computing; b waited longest for it: 50 ms."));
  CHECK(contains(story.sentences[0], "averaged"));
  CHECK(contains(story.sentences[1], "was ready last"));
  CHECK(contains(story.sentences[2], "Rows of the next round"));
  CHECK(contains(said, "Maximum wait for rows: 80 ms; maximum compute time: 5.0 ms; exchange: unknown"));
  const auto first = explain_round(view, nullptr, rounds[0], &rounds[1]);
  CHECK(first.devices[1].sync_s == doctest::Approx(0.003));
  CHECK(contains(first.sentences[2], "Rows of the next round: a 40, b 64 and c 0; it starts within 200 ms."));
  CHECK(contains(first.sentences[3], "first round of the view"));
  CHECK(contains(first.sentences[4], "exchange: 3.0 ms"));
}

TEST_CASE("Story: in a round without rows nobody waits for anybody") {
  ViewRecord view = view_of_three(2);
  RoundRecord idle;
  idle.view = 2;
  idle.table.facts.resize(3);
  idle.table.facts[0].wait_seconds = 2.0;
  idle.table.facts[1].wait_seconds = 0.1;
  idle.plan.now.mode = sync::policy::Mode::idle;
  idle.plan.next.rows = {0, 0, 0};
  const auto story = explain_round(view, nullptr, idle, nullptr);
  CHECK(story.last.empty());
  for (const auto& sentence : story.sentences) CHECK_MESSAGE(!contains(sentence, "waited"), sentence);
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
  for (const std::string start : {"", "{}\n"}) {  // a disk may leave many zeros after the last line
    folder.write("decisions.jsonl", start + std::string(200'000, '\0'));
    REQUIRE(open_decision_log(path, 1'000'000));
    CHECK(read_file(path) == start);
  }
}
