// Output of `rivulet status` and `rivulet top` for a device's pages.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "core/clock.h"
#include "runtime/cli/command.h"
#include "runtime/cli/node_pages.h"
#include "runtime/cli/node_text.h"
#include "runtime/cli/text.h"
#include "runtime/status/http/http_server.h"
#include "tests/support/scripted_server.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::runtime::cli;
using namespace rivulet::testing;

namespace {

constexpr const char* status_text =
    R"({"id":"b","job":"mnist","model":"lenet5","state":"training","phrase":"","view":2,"world":3,"steps":120,)"
    R"("batch_rows":12,"stream_rate":99.5,"rows_waiting":4,"lag_records":null,"rows_trained":5000,"group_rows":15000,)"
    R"("loss":0.25,"accuracy":0.91,"held_out_accuracy":null,"rows_dropped":{"malformed":3,"bad_label":0},)"
    R"("partitions":[{"topic":"images","partition":1,"state":"stopped","reason":"offset 5 is gone"}],)"
    R"("compute_s":1.5,"wait_s":0.5,"sync_s":0.25,"bytes_sent":1000,"bytes_received":2000,"record_bytes_trained":4000,"local_steps":8,"keep_ratio":0.05,)"
    R"("own":{"rows":1000,"loss":0.5,"accuracy":0.99,"largest_class":"ok\u001b[2J","largest_class_share":0.985,"classes":[)"
    R"({"class":"ok\u001b[2J","rows":985,"recall":0.992,"precision":null},{"class":"fault","rows":10,"recall":0.8,"precision":0.5},)"
    R"({"class":"odd","rows":0,"recall":null,"precision":0}],"mean_absolute_error":null,"r2":null}})";
constexpr const char* group_text =
    R"({"view":2,"rank":1,"members":["a","b"],"left_out":0,"rounds":[],"story":{"ready_last":"a","said":["It is so.","It is\u001b[2J \u009b31m so\r\nto\u007fo, übrigens."],)"
    R"("devices":[{"id":"a","rows":20,"weight":0.75,"stream_rows_per_s":200.5,"rows_waiting":1,"wait_s":0.1,"compute_s":0.02,)"
    R"("ready_before_last_s":0,"next_rows":20},{"id":"b\u001b[2J","rows":5,"weight":0.25,"stream_rows_per_s":50,"rows_waiting":0,)"
    R"("wait_s":0.05,"compute_s":0.01,"ready_before_last_s":0.06,"next_rows":5}]}})";

HttpServer::Pages pages(bool ready) {
  return {[] { return std::string(); },
          [](std::string&) { return true; },
          [ready](std::string& why) {
            why = "forming: waiting for c";
            return ready;
          },
          [] { return std::string(status_text); },
          [] { return std::string(group_text); },
          [](const std::string&) { return std::string(); }};
}

struct Said {
  ExitCode exit;
  std::string out;
  std::string err;
};
Said say(const std::vector<std::string>& arguments, std::map<std::string, std::string> environment = {}) {
  std::ostringstream out;
  std::ostringstream err;
  Terminal terminal{out, err};
  terminal.environment = std::move(environment);
  const ExitCode exit = run_command_line(arguments, terminal);
  return {exit, out.str(), err.str()};
}

struct Device {
  explicit Device(bool ready = true, const Access& access = {})
      : server(std::move(HttpServer::start("127.0.0.1:0", pages(ready), access)).value()) {}
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(server->port()); }
  std::unique_ptr<HttpServer> server;
};

}  // namespace

TEST_CASE("Status: what a device says, its group, and what is wrong") {
  const Device device;
  const Said said = say({"status", device.address()});
  CHECK(said.exit == ExitCode::ok);
  CHECK(said.err.empty());
  for (const char* words :
       {"b (job mnist, model lenet5): training, 3 devices in view 2; slowest: a\n",
        "99.5 rows/s arriving, 4 rows waiting, unknown records behind\n",
        "5 000 rows here, 15 000 by the group",
        "loss 0.2500, accuracy (prequential) 91.0 %, held out not measured", "3 malformed",
        "  own rows  loss 0.5000, accuracy (prequential) 99.0 %; baseline (always \"ok\\u001b[2J\") 98.5 %\n",
        "  classes   fault: recall 80.0 %, precision 50.0 %, 10 rows\n            ok\\u001b[2J: recall 99.2 "
        "%, precision -, "
        "985 rows\n            odd: recall -, precision 0.0 %, 0 rows\n",
        "  peers     1.0 kB sent, 25.0 % of the rows' bytes (4.0 kB), 2.0 kB received\n",
        "  sync      every 8 steps, on 5 % of the parameters\n",
        "STOPPED   images partition 1: offset 5 is gone", "  slowest\n", "It is so."})
    CHECK_MESSAGE(contains(said.out, words), said.out);
  CHECK(contains(said.out, "b\\u001b[2J"));
  CHECK(contains(said.out, "\n  It is\\u001b[2J \\u009b31m so\\r\\nto\\u007fo, übrigens.\n"));
  for (const char* moves : {"\x1b", "\x7f", "\r", "\xc2\x9b"}) CHECK_FALSE(contains(said.out, moves));
}

TEST_CASE(
    "Status and top: a regression has a loss and no accuracy; before the first round there is neither") {
  NodeReport regression;
  regression.loss = 0.25;
  CHECK(render_report(regression, 200).at(3) == "  learning  loss 0.2500");
  CHECK(contains(render_report_line(regression), ", loss 0.2500, "));
  regression.own = {.rows = 500, .loss = 0.125, .mean_absolute_error = 3.25, .r2 = 0.875};
  CHECK(render_report(regression, 200).at(4) ==
        "  own rows  loss 0.1250, mean absolute error 3.25, R2 0.875");
  const NodeReport untrained;
  CHECK(render_report(untrained, 200).at(3) == "  learning  loss -");
  CHECK(contains(render_report_line(untrained), ", loss -, "));
}

TEST_CASE("Status: why the last view ended, and how long the group made no step") {
  const auto change_in = [](const NodeReport& report) {
    for (const auto& line : render_report(report, 200))
      if (line.starts_with("  change ")) return line;
    return std::string();
  };
  NodeReport report;
  CHECK(change_in(report).empty());
  report.view_ended = "rank 2 (c) is lost";
  CHECK(change_in(report) == "  change    rank 2 (c) is lost");
  report.view_gap_s = 2.5;
  CHECK(change_in(report) == "  change    rank 2 (c) is lost; 2.5 s without a step");
  report.view_gap_s = 75.4;
  CHECK(last_change(report) == "rank 2 (c) is lost; 75 s without a step");
}

TEST_CASE(
    "Status and top: joining, cooling down and paused are shown with what they wait for, and no fault") {
  for (const auto& [state, condition] :
       {std::pair("joining", "joining"), std::pair("cooling down", "cooling_down"),
        std::pair("paused", "paused")}) {
    const std::string phrase = std::string(state) + ": waiting for c";
    const auto report = read_node_report(
        R"({"id":"b","world":0,"state":")" + std::string(state) + R"(","phrase":")" + phrase +
            R"(","view_ended":"device c left the group","view_gap_s":0.5,"health":[{"condition":")" +
            condition + R"(","grade":"waits","phrase":")" + phrase + R"("}]})",
        "{}");
    REQUIRE(report);
    CHECK(report->trouble.empty());
    const auto top = render_top(*report, {}, {false, false, 200});
    CHECK(top.front() == "b (job , model ): " + phrase);
    CHECK(top.back() == "  change    device c left the group; 0.50 s without a step");
    CHECK(render_report(*report, 200).front() == top.front());
    CHECK(contains(render_report_line(*report), "b: " + phrase + "  | "));
  }
}

TEST_CASE("Status: how they agree next, in words; an older device does not say") {
  NodeReport report;
  CHECK(sync_of(report).empty());
  CHECK_FALSE(edge_ratio(report));
  report.local_steps = 0;
  report.keep_ratio = 1;
  CHECK(sync_of(report) == "after each batch, on all parameters");
  report.local_steps = 1;
  report.keep_ratio = 0.005;
  CHECK(sync_of(report) == "after each step, on 0.5 % of the parameters");
  report.bytes_sent = 30;
  report.record_bytes_trained = 0;
  CHECK_FALSE(edge_ratio(report));
  report.record_bytes_trained = 60;
  CHECK(edge_ratio(report) == 0.5);
}

TEST_CASE("Status: a partition that nobody claims any more is named") {
  NodeReport report;
  report.impaired = {"no device of the group claims pumps:2"};
  CHECK(render_report(report, 200).at(6) == "  IMPAIRED  no device of the group claims pumps:2");
  report.impaired.clear();
  CHECK(render_report(report, 200).size() == 6);
}

TEST_CASE("Status: numbers that no device has are printed as the most there is, and add up") {
  const auto report = read_node_report(
      R"({"id":"b","loss":-1e300,"stream_rate":1e300,"rows_trained":18446744073709551615,"lag_records":-1e300,
          "rows_dropped":{"malformed":18446744073709551615,"duplicate":18446744073709551615}})",
      "{}");
  REQUIRE(report);
  CHECK(report->loss == -9e15);
  CHECK(report->stream_rate == 9e15);
  CHECK(report->rows_trained == 9'000'000'000'000'000);
  CHECK(report->lag_records == -9'000'000'000'000'000);
  CHECK(refused_rows(*report) == 18'000'000'000'000'000);
  for (const auto& line : render_report(*report, 80)) CHECK_MESSAGE(line.size() < 200, line);
}

TEST_CASE("Status: without brokers it says so, and knows no lag") {
  const auto shown = [](const char* state, const char* rest) {
    const auto report = read_node_report(
        std::string(
            R"({"id":"b","world":2,"lag_records":null,"health":[{"condition":"brokers_unreachable","grade":"waits",
            "phrase":"no broker of k:1 can be reached"},{"condition":"forming","grade":"waits","phrase":"forming"}],"state":")") +
            state + R"(",)" + rest + "}",
        "{}");
    REQUIRE(report);
    return render_report(*report, 200)[0] + render_report(*report, 200)[1] + render_report_line(*report);
  };
  const auto forming = shown("forming", R"("phrase":"forming: waiting for a, c")");
  CHECK_MESSAGE(contains(forming, ": not ready: no broker of k:1 can be reached; waiting for a, c  stream"),
                forming);
  CHECK(contains(forming, "unknown records behind"));
  const auto training = shown("training", R"("phrase":"")");
  CHECK_MESSAGE(contains(training, "b: not ready: no broker of k:1 can be reached  | "), training);
}

TEST_CASE("Status: what another server answers is not readiness, whatever its words, and moves no cursor") {
  ScriptedServer other({"HTTP/1.1 500 Oh\r\nContent-Length: 22\r\n\r\nit answers 503: \x1b[2Jno"});
  const Said said = say({"status", other.address(), "--ready"});
  CHECK(said.exit == ExitCode::unavailable);
  CHECK(contains(said.err, "/readyz answers 500: it answers 503: \\u001b[2Jno\n"));
  ScriptedServer page({"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "HTTP/1.1 200 OK\r\n\r\n[]"});
  CHECK(contains(say({"status", page.address()}).err, "error: "));
}

TEST_CASE("Status: an answer that trickles, never ends or is cut off holds nobody") {
  const ScriptedServer slow({});
  const RealClock clock;
  const TimePoint begin = clock.now();
  const Said said = say({"status", slow.address(), "--ready"});
  CHECK(said.exit == ExitCode::unavailable);
  CHECK(said.err == "error: http://" + slow.address() + "/readyz: no complete response in time\n");
  CHECK(to_seconds(clock.now() - begin) < testing::deadline_slack * 20);
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const ScriptedServer others(
      {ok + "Content-Length: 99999999999\r\n\r\n{", ok + "\r\n" + std::string(5 << 20, '['),
       ok + "X: " + std::string(200'000, 'y'), ok + "Content-Length: 3\r\n\r\nok", ok, ""});
  for (const char* why :
       {"longer than 4 MiB", "longer than 4 MiB", "not HTTP", "incomplete", "incomplete", ": "}) {
    const auto answer = say({"status", others.address()});
    CHECK(answer.exit == ExitCode::unavailable);
    CHECK_MESSAGE(contains(answer.err, why), answer.err);
  }
}

TEST_CASE("Status: as JSON it is both pages") {
  const Device device;
  const Said said = say({"status", device.address(), "--json"});
  CHECK(said.exit == ExitCode::ok);
  CHECK(said.out == std::string(R"({"status":)") + status_text + R"(,"group":)" + group_text + "}\n");
}

TEST_CASE("Status: --ready is for a health check") {
  const Device ready;
  const Said yes = say({"status", "--ready"}, {{"RIVULET_HTTP", ready.address()}});
  CHECK(yes.exit == ExitCode::ok);
  CHECK(yes.out.empty());
  const Device forming(false);
  const Said no = say({"status", forming.address(), "--ready"});
  CHECK(no.exit == ExitCode::failure);
  CHECK(contains(no.err, "forming: waiting for c"));
  const Said told = say({"status", forming.address()});  // the same exit code, with the full output
  CHECK(told.exit == ExitCode::failure);
  CHECK(told.err.empty());
  CHECK(contains(told.out, "5 000 rows here"));
  CHECK(say({"status", "127.0.0.1:1", "--ready"}).exit == ExitCode::unavailable);
}

TEST_CASE("Status: in the device's own environment it finds address and token") {
  const TempDir folder;
  const auto file = folder.write("token", "a-token-of-these-tests\n").string();
  const Device device(true, Access::from_file(file).value());
  const auto port = std::to_string(device.server->port());
  CHECK(say({"status"}, {{"RIVULET_HTTP", "0.0.0.0:" + port}, {"RIVULET_HTTP_TOKEN_FILE", file}}).exit ==
        ExitCode::ok);
  CHECK(say({"status", "127.0.0.1:" + port, "--token-file", file}).exit == ExitCode::ok);
  const Said stranger = say({"status", "127.0.0.1:" + port});
  CHECK(stranger.exit == ExitCode::unavailable);
  CHECK(contains(stranger.err, "401"));
  const Said lost = say({"status", "127.0.0.1:" + port, "--token-file", file + "x"});
  CHECK(lost.exit == ExitCode::configuration);
  CHECK(contains(lost.err, "cannot be read"));
}

TEST_CASE("Top: in a pipe a line per look, and an error if nobody is there") {
  const Device device;
  const Said said = say({"top", device.address(), "--count", "2", "--interval", "100ms"});
  CHECK(said.exit == ExitCode::ok);
  CHECK(std::count(said.out.begin(), said.out.end(), '\n') == 2);
  CHECK(said.out.starts_with("b: training, 3 devices in view 2; slowest: a  | 99.5 rows/s, waiting 4, "));
  CHECK(say({"top", "127.0.0.1:1", "--count", "1"}).exit == ExitCode::unavailable);
  CHECK(say({"top", device.address(), "--interval", "1"}).exit == ExitCode::usage);
  CHECK(say({"top", "nowhere"}).exit == ExitCode::usage);
}

TEST_CASE("Status: what a transaction holds back is said, and no word has two meanings") {
  NodeReport report;
  report.partitions.push_back({"images", "reading", "an open transaction blocks 3 records", 1, 5, 8, 0});
  const auto lines = render_report(report, 200);
  CHECK(std::ranges::count(lines, "  blocked   images partition 1: an open transaction blocks 3 records") ==
        1);
  for (const auto& line : lines) CHECK_FALSE(line.starts_with("  sync "));
}

TEST_CASE("Top: on a terminal it is a table, a chart and one sentence, and what somebody has to look at") {
  NodeReport report;
  report.id = "b";
  report.state = "training";
  report.world = 2;
  report.view = 1;
  report.loss = 0.5;
  report.members = {{"a", 10, 0.75, 0.1, 0.02, 0, 1, 20, 20}, {"b", 5, 0.25, 0.1, 0.01, 0.06, 0, 5, 5}};
  report.detail = {"It is so.", "And so.", "Why: so."};
  const ViewStyle plain{.width = 100};
  const auto quiet = render_top(report, {}, plain);
  CHECK(quiet.size() == 5);  // state, heading, two devices, a sentence
  CHECK(quiet.back() == "  It is so.");
  const auto drawn = render_top(report, {{2.0, 1.0, 0.5}, 120}, plain);
  REQUIRE(drawn.size() == quiet.size() + 8);
  CHECK(drawn[4] == "  learning  loss 0.5000");
  CHECK(drawn[5].starts_with("         2 |####"));
  CHECK(drawn[10].starts_with("         0 |####"));
  // Even a few losses use the whole width.
  for (int line = 5; line <= 10; ++line) CHECK(drawn[static_cast<std::size_t>(line)].size() == 12 + 80);
  CHECK(drawn[10].find(' ', 12) == std::string::npos);
  CHECK(drawn[11].starts_with("            2 min 0 s ago"));
  CHECK(drawn[11].ends_with("now"));
  CHECK(drawn[11].size() == drawn[10].size());
  report.rows_dropped = {{"malformed", 3}};
  report.impaired = {"no device of the group claims pumps:2"};
  const auto troubled = render_top(report, {}, plain);
  CHECK(troubled[troubled.size() - 2] == "  dropped   3 malformed");
  CHECK(troubled.back() == "  IMPAIRED  no device of the group claims pumps:2");
  for (const auto& line : render_top(report, {{1, 2}, 1}, {.width = 40})) CHECK(line.size() <= 40);
}

TEST_CASE("Status: a share has one unit, however small or large") {
  CHECK(human_share(0.0004) == "0.04 %");
  CHECK(human_share(0.046) == "4.6 %");
  CHECK(human_share(0.9996) == "100 %");
  CHECK(human_share(14.8) == "1480 %");
}
