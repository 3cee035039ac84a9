#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "runtime/node/run.h"
#include "runtime/process/exit_code.h"
#include "runtime/process/signals.h"
#include "runtime/status/node_status.h"
#include "runtime/status/status_json.h"
#include "tests/support/counting_metrics.h"

using namespace rivulet;
using namespace rivulet::runtime;
using Json = nlohmann::json;

namespace {

void fill(NodeStatus& s) {
  s.state = NodeState::training;
  s.set_phrase("round 7");
  s.set_digest("00ff");
  s.records_consumed += 90;
  s.bytes_consumed += 70'650;
  s.rows_consumed += 89;
  s.rows_dropped[DropReason::malformed] += 1;
  s.stream_rate = 812.5;
  s.lag_records = 12;
  s.view = 2;
  s.view_gap_s = 0.375;
  s.view_gaps_s += 1.625;
  s.end_view(ViewEnd::lost, "peer c is lost");
  s.rank = 1;
  s.world = 4;
  s.rounds += 8;
  s.steps = 7;
  s.batches += 4;
  s.rows_trained += 80;
  s.rows_waiting = 9;
  s.group_rows = 300;
  s.batch_rows = 16;
  s.loss = 0.25;
  s.accuracy = 0.9;
  s.held_out_accuracy = 0.75;
  s.compute_s += 1.5;
  s.wait_s += 2.5;
  s.sync_s += 3.5;
  s.first_step_s = 0.5;
  s.seconds_training = 10;
  s.bytes_sent += 1000;
  s.bytes_sent_for[sync::Traffic{0}] += 400;
  s.bytes_sent_for[sync::Traffic{1}] += 590;
  s.bytes_sent_for[sync::Traffic{2}] += 8;
  s.bytes_sent_for[sync::Traffic{3}] += 2;
  s.local_steps = 9;
  s.keep_ratio = 0.05;
  s.record_bytes_trained += 500;
  s.bytes_received += 3000;
  s.digests_compared += 21;
  s.early_payloads[EarlyPayload::used] += 6;
  s.early_payloads[EarlyPayload::wasted] += 2;
  s.digests_different += 1;
  s.set_source_trouble("no broker of k:1 can be reached");
  s.set_control_trouble("gone");
  s.set_unclaimed({"mnist:1"});
  s.set_own_scores({.rows = 1000,
                    .loss = 0.5,
                    .accuracy = 0.99,
                    .classes = {{990, 984, 495}, {0, 0, 0}, {10, 16, 8}},
                    .names = {"ok", "odd", "fault"},
                    .largest_share = 0.99,
                    .largest_class = "ok"});
  s.set_health({.judged = true, .findings = {{"topic_gone", Grade::useless, "topic \"t\" is gone"}}});
  s.set_ledger(
      {{{0, 3}, {{10, 0}, {100, 0}, 80, 1, 8, {0, 0, 3}, {}}}, {{9, 0}, {{0, 0}, {1, 0}, 3, 0, 0, {}, {}}}});
  s.set_partitions({{"a", 3, "reading", 7, -1, 9, 0, ""}, {"b", 0, "stopped", 5, 8, 20, 2, "cut"}});
}

}  // namespace

TEST_CASE("NodeStatus: every state has a name of its own") {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(NodeState::failed); ++i)
    names.insert(name_of(static_cast<NodeState>(i)));
  CHECK(names.size() == 11);
  CHECK(!names.contains("unknown"));
  names.clear();
  for (std::size_t i = 0; i < view_ends; ++i) names.insert(name_of(static_cast<ViewEnd>(i)));
  CHECK(names.size() == view_ends);
  CHECK(!names.contains("unknown"));
}

TEST_CASE("Status page: everything a device knows about itself is there under its name") {
  NodeStatus status;
  fill(status);
  const Json page = Json::parse(status_json(status, {"device-1", "demo", "lenet5", {"mnist"}}));
  const Json expected = Json::parse(R"({"id":"device-1","job":"demo","model":"lenet5","state":"training",
    "phrase":"round 7","view_ended":"peer c is lost","view_changes":{"lost":1,"left":0,"joined":0,"left_out":0,"wrong":0,
    "rolled_back":0,"not_connected":0},"view_gaps_s":1.625,"view_gap_s":0.375,"ready":false,"health":[{"condition":"topic_gone","grade":"useless","phrase":"topic \"t\" is gone"}],"view":2,"rank":1,"world":4,"rounds":8,"steps":7,"batches":4,"group_rows":300,"batch_rows":16,
    "loss":0.25,"accuracy":0.9,"held_out_accuracy":0.75,"unclaimed_partitions":["mnist:1"],
    "marks":[],"own":{"rows":1000,"loss":0.5,"accuracy":0.99,"largest_class":"ok","largest_class_share":0.99,"classes":[
    {"class":"ok","rows":990,"predicted":984,"right":495,"recall":0.5,"precision":0.5030487804878049},
    {"class":"fault","rows":10,"predicted":16,"right":8,"recall":0.8,"precision":0.5}],"mean_absolute_error":null,"r2":null},
    "records_consumed":90,"bytes_consumed":70650,
    "rows_consumed":89,"rows_waiting":9,"rows_trained":80,"rows_dropped":{"tombstone":0,"oversize":0,"malformed":1,
    "missing_field":0,"wrong_shape":0,"wrong_type":0,"nonfinite_value":0,"bad_label":0,"nonfinite_batch":0,"truncated":0,"filtered":0,"context":0,"expired":0},
    "stream_rate":812.5,"lag_records":12,"source_trouble":"no broker of k:1 can be reached","control_trouble":"gone",
    "partitions":[{"topic":"a","partition":3,"state":"reading","next_offset":7,"low_watermark":null,"high_watermark":9,
    "skipped":0,"reason":null},{"topic":"b","partition":0,"state":"stopped","next_offset":5,"low_watermark":8,
    "high_watermark":20,"skipped":2,"reason":"cut"}],"compute_s":1.5,"wait_s":2.5,"sync_s":3.5,"first_step_s":0.5,
    "seconds_training":10.0,"bytes_sent":1000,"bytes_received":3000,"bytes_sent_for":{"facts":400,"contributions":590,"state":8,"rows":2},"local_steps":9,"keep_ratio":0.05,"record_bytes_trained":500,"digests_compared":21,"digests_different":1,
    "early_payloads":{"used":6,"wasted":2},
    "digest":"00ff","ledger":[{"topic":"mnist","partition":3,"start":10,"next":100,"rows_trained":80,
    "rows_dropped":{"malformed":3},"rows_shared":1,"holes":8,"balanced":true},{"topic":"#9","partition":0,"start":0,
    "next":1,"rows_trained":3,"rows_dropped":{},"rows_shared":0,"holes":0,"balanced":false}],"ingest_beat_ns":0,"train_beat_ns":0})");
  CHECK(page == expected);
}

TEST_CASE(
    "Status page: what was not measured is null, what is not a number too, and any text is legal JSON") {
  NodeStatus status;
  status.loss = std::numeric_limits<double>::quiet_NaN();
  status.set_phrase("topic \"a\n\xff\"");
  const Json page = Json::parse(status_json(status, {"d", "j", "m"}));
  CHECK(page["held_out_accuracy"].is_null());
  CHECK(page["accuracy"].is_null());
  CHECK(page["first_step_s"].is_null());
  CHECK(page["lag_records"].is_null());
  CHECK(page["source_trouble"].is_null());
  CHECK(page["control_trouble"].is_null());
  CHECK(page["loss"].is_null());
  CHECK(page["state"] == "starting");
  CHECK(page["phrase"].get<std::string>().find("topic \"a\n") == 0);
}

TEST_CASE("Status page: before the first round there is neither loss nor accuracy, not 0 of them") {
  const NodeStatus status;
  const Json page = Json::parse(status_json(status, {"d", "j", "m"}));
  CHECK(page.at("loss").is_null());
  CHECK(page.at("accuracy").is_null());
}

TEST_CASE("Status: one call books a number for the page and for Prometheus") {
  testing::CountingMetrics metrics;
  NodeStatus status(metrics);
  fill(status);
  CHECK(metrics["rows_consumed_total"] == 89);
  CHECK(metrics["rows_dropped_total/malformed"] == 1);
  CHECK(metrics["rows_dropped_total/oversize"] == 0);
  CHECK(metrics["stream_rows_per_second"] == 812.5);
  CHECK(metrics["collective_world_size"] == 4);
  CHECK(metrics["rows_trained_total"] == 80);
  CHECK(metrics["buffer_rows"] == 9);
  CHECK(metrics["train_loss/average"] == 0.25);
  CHECK(metrics["step_duration_seconds/compute"] == 1);  // observed once
  CHECK(metrics["sync_sent_bytes_total/contributions"] == 590);
  CHECK(metrics["sync_keep_ratio"] == 0.05);
  CHECK(metrics["collective_operations_total/early_payload/used"] == 6);
  CHECK(metrics["collective_operations_total/early_payload/wasted"] == 2);
  status.rows_trained += 5;
  status.world = 0;
  CHECK(status.rows_trained == 85);
  CHECK(metrics["rows_trained_total"] == 85);
  CHECK(metrics["collective_world_size"] == 0);
}

TEST_CASE(
    "Status: series are there from the start, but of what not every device measures only where it does") {
  testing::CountingMetrics metrics;
  NodeStatus status(metrics);
  CHECK(metrics.has("rows_dropped_total/nonfinite_batch"));
  CHECK(metrics.has("train_loss/average"));
  CHECK(std::isnan(metrics["train_loss/average"]));
  CHECK(metrics["sync_keep_ratio"] == 1);
  CHECK_FALSE(metrics.has("eval_score/prequential_accuracy"));
  CHECK_FALSE(metrics.has("eval_score/held_out_accuracy"));
  status.measures(status.accuracy);
  CHECK(std::isnan(metrics["eval_score/prequential_accuracy"]));
  CHECK_FALSE(metrics.has("eval_score/held_out_accuracy"));
  status.accuracy = 0.5;
  CHECK(metrics["eval_score/prequential_accuracy"] == 0.5);
  const int asked = metrics.asked();
  fill(status);
  CHECK(metrics.asked() == asked);  // requesting a series may wait for a scrape
}

TEST_CASE("Status: a device's summary is made of its numbers and of what the process used") {
  NodeStatus status;
  fill(status);
  const DeviceSummary d = make_device_summary(status, "device-1");
  CHECK(d.id == "device-1");
  CHECK(d.rows_consumed == 89);
  CHECK(d.rows_trained == 80);
  CHECK(d.rows_waiting == 9);
  CHECK(d.rows_dropped == std::map<std::string, std::uint64_t>{{"malformed", 1}});
  CHECK(d.batch_mean == 20);
  CHECK(d.digest == "00ff");
  CHECK(d.cpu_s > 0);
  CHECK(d.max_rss_bytes > 1'000'000);
  CHECK(d.max_rss_bytes < 1'000'000'000'000);
  NodeStatus fresh;
  CHECK(make_device_summary(fresh, "x").batch_mean == 0);
}

TEST_CASE("Status: texts may be written and read at the same time") {
  NodeStatus status;
  std::thread writer([&] {
    for (int i = 0; i < 2000; ++i) status.set_phrase(std::string(100, static_cast<char>('a' + i % 26)));
  });
  bool whole = true;
  for (int i = 0; i < 2000; ++i) {
    const std::string text = status.phrase();
    whole = whole && text.find_first_not_of(text.empty() ? ' ' : text[0]) == std::string::npos;
  }
  writer.join();
  CHECK(whole);
}

TEST_CASE("Signals: the first asks to finish, the next to end now, and a broken pipe is not a signal") {
  StopRequest stop{0};
  {
    const SignalHandlers handlers(stop, SignalHandlers::Second::raises);
    std::raise(SIGPIPE);
    CHECK(stop == 0);
    std::raise(SIGTERM);
    CHECK(stop == 1);
    std::raise(SIGINT);
    CHECK(stop == 2);
    std::raise(SIGTERM);
    CHECK(stop == 2);
  }
  StopRequest next{0};
  const SignalHandlers handlers(next);
  std::raise(SIGINT);
  CHECK(next == 1);
  CHECK(stop == 2);
}

TEST_CASE("Signals: a terminal that closes asks to finish, under nohup it is nothing") {
  {
    StopRequest stop{0};
    const SignalHandlers handlers(stop);
    std::raise(SIGHUP);
    CHECK(stop == 1);
  }
  std::signal(SIGHUP, SIG_IGN);
  StopRequest stop{0};
  {
    const SignalHandlers handlers(stop);
    std::raise(SIGHUP);
  }
  std::raise(SIGHUP);  // the default action was not restored
  CHECK(stop == 0);
  std::signal(SIGHUP, SIG_DFL);
}

TEST_CASE("Signals: the second ends the process at once, whatever its threads are doing") {
  const pid_t child = ::fork();
  if (child == 0) {
    StopRequest stop{0};
    const SignalHandlers handlers(stop);
    std::raise(SIGTERM);
    std::raise(SIGTERM);
    ::_exit(99);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == static_cast<int>(ExitCode::failure));
}

TEST_CASE("Signals: who has ended well is not killed by one that comes late") {
  const pid_t child = ::fork();
  if (child == 0) {
    StopRequest stop{0};
    {
      const SignalHandlers handlers(stop);
    }
    std::raise(SIGTERM);
    std::raise(SIGINT);
    ::_exit(stop == 0 ? 7 : 8);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("--stop-after: rows, rounds or seconds, and a usage error that teaches for anything else") {
  const auto rows = parse_stop_after("rows=60000");
  REQUIRE(rows);
  CHECK(rows.value().rows == 60000);
  CHECK(rows.value().rounds == 0);
  CHECK(parse_stop_after("rounds=200").value().rounds == 200);
  CHECK(parse_stop_after("seconds=0.5").value().seconds == 0.5);
  for (const char* bad :
       {"", "rows", "rows=", "rows=0", "rows=-1", "rows=1x", "rounds=1.5", "rows= 5", "steps=5", "seconds=0",
        "seconds=nan", "seconds=inf", "seconds=-3", "rows=99999999999999999999"}) {
    CAPTURE(bad);
    const auto parsed = parse_stop_after(bad);
    REQUIRE(!parsed);
    CHECK(parsed.error().code == ErrorCode::usage);
    CHECK(parsed.error().message.find("rows=N, rounds=N or seconds=N") != std::string::npos);
  }
}

TEST_CASE("Exit codes: what a supervisor can rely on") {
  CHECK(static_cast<int>(exit_code_for(ErrorCode::unavailable)) == 69);
  CHECK(static_cast<int>(exit_code_for(ErrorCode::peer_lost)) == 75);
  CHECK(static_cast<int>(exit_code_for(ErrorCode::timed_out)) == 75);
  CHECK(static_cast<int>(exit_code_for(ErrorCode::superseded)) == 76);
  CHECK(static_cast<int>(exit_code_for(ErrorCode::invalid_config)) == 78);
  CHECK(static_cast<int>(exit_code_for(ErrorCode::usage)) == 2);
  CHECK(static_cast<int>(exit_code_for(ErrorCode::diverged)) == 1);
  CHECK(static_cast<int>(exit_code_for(ErrorCode::cancelled)) == 0);
}
