// Recent rounds for pages: what is kept, that the writer never waits, and their JSON and page.
#include "runtime/status/recent_rounds.h"

#include <doctest/doctest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/clock.h"
#include "runtime/status/group_json.h"
#include "runtime/status/page/status_page.h"
#include "runtime/status/status_json.h"
#include "tests/support/counting_metrics.h"
#include "tests/support/drawn_decisions.h"
#include "tests/support/members.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

void show_round(RecentRounds& board, ViewRecord& view, std::uint64_t round, Rng& rng) {
  const auto table = drawn_table(rng, round);
  const auto plan = sync::policy::plan(table, view.policy, stream_controllers(), view.state);
  board.add(view.number, round, table, plan);
}

nlohmann::json group_of(const RecentRounds& board) {
  return nlohmann::json::parse(group_json(board.read()));
}

/// A status of a device with an id and a phrase.
std::string status_of(const std::string& id, const std::string& phrase) {
  NodeStatus status;
  status.state = phrase.empty() ? NodeState::training : NodeState::forming;
  status.world = 3;
  status.view = 2;
  status.steps = 1'234'567;
  status.stream_rate = 812.44;
  status.rows_trained += 9001;
  status.rows_dropped[DropReason::malformed] += 7;
  status.set_phrase(phrase);
  return status_json(status, {id, "mnist", "lenet5", {"images"}});
}

int count_of(const std::string& text, const std::string& what) {
  int found = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("Status JSON: what happened in the last minutes is told, with how long ago it was") {
  NodeStatus status;
  const auto marks = [&] {
    return nlohmann::json::parse(status_json(status, {"device-1", "demo", "linear"})).at("marks");
  };
  CHECK(marks() == nlohmann::json::array());
  status.keep_history();
  status.mark("feature temp is constant");
  status.look_back(TimePoint(std::chrono::seconds(1)));
  status.look_back(TimePoint(std::chrono::seconds(2)));
  CHECK(marks() == nlohmann::json::parse(R"([{"seconds_ago": 2, "phrase": "feature temp is constant"}])"));
}

TEST_CASE("Board: it holds the newest rounds of the newest view, oldest first") {
  RecentRounds board;
  CHECK_FALSE(board.read().view);
  Rng rng(1);
  ViewRecord view = view_of_three(2);
  board.enter_view(view);
  CHECK(board.read().view->number == 2);
  CHECK(board.read().rounds.empty());
  for (std::uint64_t round = 0; round < 3 * RecentRounds::rounds_most; ++round) {
    show_round(board, view, round, rng);
    const auto shown = board.read();
    REQUIRE(!shown.rounds.empty());
    CHECK(shown.rounds.size() <= RecentRounds::rounds_most);
    CHECK(shown.rounds.back().round == round);
    for (std::size_t i = 1; i < shown.rounds.size(); ++i)
      CHECK(shown.rounds[i].round == shown.rounds[i - 1].round + 1);
  }
  CHECK(board.read().rounds.size() == RecentRounds::rounds_most);
  ViewRecord next = view_of_three(3);
  board.enter_view(next);
  CHECK(board.read().view->number == 3);
  CHECK(board.read().rounds.empty());
}

TEST_CASE("Board: of a large group it holds few rounds, but enough to tell one") {
  RecentRounds board;
  ViewRecord view;
  view.number = 1;
  std::vector<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back("device-" + std::to_string(i));
  view.members = ids;
  board.enter_view(view);
  sync::FactsTable table;
  table.facts.resize(1000);
  table.sections.resize(1000);
  const sync::policy::RoundPlan plan =
      sync::policy::first_state(testing::members(1000), view.policy, {}).last;
  for (std::uint64_t round = 0; round < 10; ++round) board.add(1, round, table, plan);
  CHECK(board.read().rounds.size() == RecentRounds::rounds_least);
}

TEST_CASE("Board: a reader that does not let go costs rounds, never the writer's time") {
  RecentRounds board;
  ViewRecord view = view_of_three(2);
  board.enter_view(view);
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      while (!done) {
        const auto shown = board.read();
        for (std::size_t k = 1; k < shown.rounds.size(); ++k)
          if (shown.rounds[k].round <= shown.rounds[k - 1].round) std::abort();
        static_cast<void>(group_json(shown));
      }
    });
  Rng rng(2);
  std::uint64_t round = 0;
  // The machine determines how soon a round ends during a copy.
  const RealClock clock;
  const TimePoint end = clock.now() + 20s;
  bool met = false;
  while (!met && clock.now() < end) {
    for (int i = 0; i < 200; ++i) show_round(board, view, round++, rng);
    met = board.read().left_out > 0;
  }
  done = true;
  for (auto& reader : readers) reader.join();
  REQUIRE(met);
  show_round(board, view, round, rng);
  const auto shown = board.read();
  CHECK(shown.rounds.back().round == round);
  CHECK(shown.left_out + shown.rounds.size() <= round + 1);
}

TEST_CASE("Board: a device's part in each round is measured, and the round is handed on") {
  struct Kept final : DecisionLog {
    explicit Kept(int& to) : rounds(to) {}
    void write(std::uint64_t, std::uint64_t, const sync::FactsTable&,
               const sync::policy::RoundPlan&) override {
      ++rounds;
    }
    int& rounds;
  };
  RecentRounds board;
  CountingMetrics metrics;
  int written = 0;
  const auto log = show_on_board(std::make_unique<Kept>(written), board, metrics);
  ViewRecord view = view_of_three(2);  // this device is b, of rank 1
  log->enter_view(view);
  Rng rng(5);
  auto table = drawn_table(rng, 0);
  for (std::size_t rank = 0; rank < 3; ++rank) {
    table.facts[rank].wait_seconds = 0.1;
    table.facts[rank].compute_seconds = 0.02 * static_cast<double>(rank + 1);
  }
  sync::policy::RoundPlan plan = sync::policy::first_state(testing::members(3), view.policy, {}).last;
  plan.now.weights = {0.5, 0.3, 0.2};
  log->write(2, 0, table, plan);
  CHECK(metrics["collective_weight_ratio"] == 0.3);
  CHECK(metrics["collective_spare_seconds"] == doctest::Approx(0.02));
  CHECK(metrics["collective_rounds_last_total"] == 0);
  table.facts[1].wait_seconds = 1;
  log->write(2, 1, table, plan);
  CHECK(metrics["collective_rounds_last_total"] == 1);
  CHECK(metrics["collective_spare_seconds"] == 0);
  CHECK(written == 2);
  CHECK(board.read().rounds.size() == 2);
}

TEST_CASE("Group: the newest round with a successor is told, with every member's numbers") {
  RecentRounds board;
  CHECK(group_of(board)["view"].is_null());
  CHECK(group_of(board)["story"].is_null());
  Rng rng(3);
  ViewRecord view = view_of_three(2);
  board.enter_view(view);
  CHECK(group_of(board)["view"] == 2);
  CHECK(group_of(board)["members"] == nlohmann::json::array({"a", "b", "c"}));
  show_round(board, view, 0, rng);
  CHECK(group_of(board)["story"]["round"] == 0);  // there is no better one yet
  CHECK(group_of(board)["story"]["devices"][0]["sync_s"].is_null());
  show_round(board, view, 1, rng);
  show_round(board, view, 2, rng);
  const auto group = group_of(board);
  CHECK(group["rank"] == 1);
  CHECK(group["rounds"][0]["round"] == 2);
  CHECK(group["rounds"].size() == 3);
  CHECK(group["story"]["round"] == 1);
  CHECK(group["story"]["devices"].size() == 3);
  CHECK(group["story"]["devices"][2]["id"] == "c");
  CHECK(group["story"]["devices"][2]["sync_s"].is_number());
  CHECK(group["story"]["said"].size() >= 3);
}

TEST_CASE("Group: a round that was left out is nobody's neighbour") {
  RecentRounds board;
  Rng rng(3);
  ViewRecord view = view_of_three(2);
  board.enter_view(view);
  show_round(board, view, 0, rng);
  show_round(board, view, 2, rng);
  const auto group = group_of(board);
  CHECK(group["story"]["round"] == 0);
  CHECK(group["story"]["devices"][0]["sync_s"].is_null());
}

TEST_CASE("Page: it says the numbers of its JSON, and the group's") {
  RecentRounds board;
  Rng rng(4);
  ViewRecord view = view_of_three(2);
  board.enter_view(view);
  for (std::uint64_t round = 0; round < 4; ++round) show_round(board, view, round, rng);
  const auto page = status_page(status_of("b", ""), group_json(board.read()), "0123abcd");
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(contains(page, "<style nonce=\"0123abcd\">"));
  CHECK(contains(page, "<script nonce=\"0123abcd\">"));
  CHECK(contains(page, "<h1 id=\"id\">b</h1>"));
  CHECK(contains(page, "class=\"state good\">training: 3 devices in view 2, 1&nbsp;234&nbsp;567 rounds"));
  CHECK(contains(page, "data-series=\"rows/s arriving\" data-value=\"812.44\">812.4</dd>"));
  CHECK(contains(page, "<dd id=\"rows_trained\">9&nbsp;001</dd>"));
  CHECK(contains(page, "<dd id=\"rows_refused\">7</dd>"));
  CHECK(contains(page, "<td class=\"text\">malformed</td><td>7</td>"));
  CHECK(contains(page, "b (this device)"));
  // First the state, then the charts, then the tables.
  CHECK(page.find("id=\"rows_trained\"") < page.find("<section id=\"charts\""));
  CHECK(page.find("<section id=\"charts\"") < page.find("id=\"members\""));
  const auto first = page.substr(page.find("<ul id=\"story\">"));
  CHECK(count_of(first.substr(0, first.find("</ul>")), "<li>") == 3);  // the others are under Details
  CHECK(count_of(first.substr(0, first.find("</details>")), "<li>") > 3);
  for (const char* never : {"{{", "}}", "http://", "https://", " style=", "onload", "onclick"})
    CHECK_MESSAGE(!contains(page, never), std::string(never));
  CHECK_FALSE(contains(page.substr(0, page.find("</main>")), "nan"));
}

TEST_CASE("Page: an accuracy is shown where there is one, and a loss that was not measured is no 0") {
  NodeStatus status;
  const auto page = [&] { return status_page(status_json(status, {"b", "j", "m", {}}), "{}", "n"); };
  CHECK(contains(page(), "<dd id=\"loss\" data-series=\"loss\" data-value=\"\">–</dd>"));
  status.loss = 0.25;
  CHECK(contains(page(), "data-series=\"loss\" data-value=\"0.25\">0.2500</dd>"));
  CHECK_FALSE(contains(page(), "id=\"accuracy\""));
  CHECK_FALSE(contains(page(), "id=\"held_out_accuracy\""));
  status.accuracy = 0.5;
  CHECK(contains(
      page(), "<dd id=\"accuracy\" data-series=\"accuracy (prequential)\" data-value=\"0.5\">50.0&nbsp;%"));
}

TEST_CASE("Page: ids and phrases are text, whatever is in them") {
  const std::string evil = "<script>alert(1)</script>{{live}}\"'&\xff";
  const auto page = status_page(status_of(evil, "forming: waiting for <img src=x onerror=y>"), "{}", "n");
  CHECK_FALSE(contains(page, "<script>alert"));
  CHECK_FALSE(contains(page, "<img"));
  CHECK(contains(page, "&lt;script&gt;alert(1)&lt;/script&gt;"));
  CHECK(contains(page, "class=\"state\">forming: waiting for &lt;img"));
}

TEST_CASE("Page: why the last view ended, and how long the group made no step") {
  NodeStatus status;
  const auto page = [&] { return status_page(status_json(status, {"d", "mnist", "lenet5"}), "{}", "nonce"); };
  CHECK(page().find("id=\"change\"") == std::string::npos);
  status.end_view(ViewEnd::lost, "rank 2 (<b>) is lost");
  CHECK(page().find(">last change: rank 2 (&lt;b&gt;) is lost</p>") != std::string::npos);
  status.view_gap_s = 0.375;
  CHECK(page().find("is lost; 0.38 s without a step</p>") != std::string::npos);
}

TEST_CASE("Page: what is no JSON, or of other types, gives a page that says so") {
  for (const char* bad : {"", "[", "[]", "null", "7", "{}", R"({"id":7,"partitions":{"a":1}})"}) {
    CAPTURE(bad);
    CHECK(contains(status_page(bad, bad, "n"), "</html>"));
  }
  CHECK(contains(status_page("", "", "n"), "cannot be read"));
}

TEST_CASE("Page: a broker that is away is red, a device without rows is not") {
  NodeStatus status;
  status.world = 2;
  status.state = NodeState::idle;
  const auto page = [&] { return status_page(status_json(status, {"b", "j", "m", {}}), "{}", "n"); };
  CHECK(contains(page(), "<p id=\"state\" class=\"state\">idle</p>"));
  status.set_health(
      {.judged = true,
       .findings = {{"source", Grade::useless, "no broker of kafka:9092 can be reached (refused)"}}});
  CHECK(contains(page(), "<p id=\"state\" class=\"state bad\">not ready: no broker of kafka:9092"));
}

TEST_CASE("Page: charts begin with what the device remembers, oldest first, without what was not measured") {
  NodeStatus status;
  const auto page = [&] {
    return status_page(status_json(status, {"b", "j", "m", {}}), "{}", "n", status.history());
  };
  CHECK(contains(page(), "<div id=\"past\" hidden></div>"));
  status.keep_history();
  TimePoint now(std::chrono::seconds(1));
  for (int second = 0; second < 3; ++second) {
    status.stream_rate = 100 + second;
    if (second > 0) status.loss = 0.5 / second;
    status.look_back(now);
    status.look_back(now + std::chrono::milliseconds(900));  // too early
    now += std::chrono::seconds(1);
  }
  CHECK(contains(page(), "<data data-series=\"rows/s arriving\" value=\"100 101 102\"></data>"));
  CHECK(contains(page(), "<data data-series=\"loss\" value=\"0.5 0.25\"></data>"));
  CHECK(contains(page(), "<data data-series=\"accuracy (prequential)\" value=\"\"></data>"));
  for (std::size_t second = 0; second < History::kept; ++second) {
    status.stream_rate = static_cast<double>(second);
    status.look_back(now);
    now += std::chrono::seconds(1);
  }
  const auto all = status.history()->read(History::Series::stream_rate);
  REQUIRE(all.size() == History::kept);
  CHECK(all.front() == 0);
  CHECK(all.back() == History::kept - 1);
}

TEST_CASE("Status page: what happened to the stream is a mark, while the charts still reach so far back") {
  NodeStatus status;
  status.mark("nobody looks back");  // no page, no history
  status.keep_history();
  const auto page = [&] {
    return status_page(status_json(status, {"b", "j", "m", {}}), "{}", "n", status.history());
  };
  TimePoint now{};
  const auto look = [&](std::size_t seconds) {
    for (std::size_t i = 0; i < seconds; ++i, now += std::chrono::seconds(1)) status.look_back(now);
  };
  look(5);
  CHECK_FALSE(contains(page(), "id=\"marks\""));
  status.mark("feature <temp> has moved");
  look(3);
  CHECK(contains(page(),
                 "<ul id=\"marks\"><li data-ago=\"3\">3&nbsp;s ago: <span>feature &lt;temp&gt; has "
                 "moved</span></li></ul>"));
  look(History::kept - 4);
  CHECK(contains(page(), "data-ago=\"299\""));
  look(1);
  CHECK_FALSE(contains(page(), "id=\"marks\""));
  for (int i = 0; i < 9; ++i) status.mark("change " + std::to_string(i));
  CHECK(status.history()->marks().size() == 8);
  CHECK(status.history()->marks().back().phrase == "change 8");
}

TEST_CASE("Status page: what the model makes of this device's own rows, and of each class") {
  NodeStatus status;
  const auto page = [&] { return status_page(status_json(status, {"b", "j", "m", {}}), "{}", "n"); };
  for (const char* part : {"own_loss", "own_accuracy", "largest_class", "id=\"classes\"", "id=\"r2\""})
    CHECK_FALSE(contains(page(), part));
  status.set_own_scores({.rows = 1000,
                         .loss = 0.5,
                         .accuracy = 0.99,
                         .classes = {{990, 984, 982}, {10, 16, 8}},
                         .names = {"<ok>", "fault"},
                         .largest_share = 0.985,
                         .largest_class = "<ok>"});
  for (const char* part :
       {"<dd id=\"own_loss\">0.5000</dd>", "<dd id=\"own_accuracy\">99.0&nbsp;%</dd>",
        "<dt>baseline: always &lt;ok&gt;</dt><dd id=\"largest_class\">98.5&nbsp;%</dd>",
        "last 1&nbsp;000 rows, before training",
        "<td class=\"text\">fault</td><td>10</td><td>80.0&nbsp;%</td><td>50.0&nbsp;%</td>"})
    CHECK_MESSAGE(contains(page(), part), part);
  status.set_own_scores({.rows = 500, .loss = 0.125, .mean_absolute_error = 3.25, .r2 = 0.875});
  CHECK(contains(page(), "<dd id=\"mean_absolute_error\">3.25</dd>"));
  CHECK(contains(page(), "<dd id=\"r2\">0.875</dd>"));
}
