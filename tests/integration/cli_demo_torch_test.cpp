#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/places.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<Process> start_demo(const std::vector<std::string>& arguments,
                                    const std::string& rates = "400,100") {
  ProcessOptions options;
  options.command = {rivulet_binary(), "demo", "--model", "linear", "--rates", rates};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  auto demo = Process::start(options);
  REQUIRE(demo);
  return std::move(demo).value();
}

/// The processes of `pids` that still run.
std::vector<pid_t> alive(const std::vector<pid_t>& pids) {
  std::vector<pid_t> left;
  for (const auto pid : pids) {
    const auto stats = read_process_stats(pid);
    if (stats && stats->state != 'Z') left.push_back(pid);
  }
  return left;
}

/// Waits until broker, feeder and both devices run; returns them.
std::vector<pid_t> all_four(Process& demo) {
  std::vector<pid_t> children;
  REQUIRE(wait_until([&] { return (children = children_of(demo.pid())).size() == 4; }, 60s));
  return children;
}

std::set<std::string> keys_of(const nlohmann::json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

}  // namespace

TEST_CASE("Demo: the last line is one object with exactly the fields that were promised") {
  const TempDir folder;
  auto demo = start_demo({"--seconds", "8", "--json", "--keep", (folder.path() / "kept").string()});
  const auto ended = demo->wait(60s);
  REQUIRE(ended);
  INFO(demo->errors());
  CHECK(ended->code == 0);
  const auto summary = nlohmann::json::parse(last_line(demo->output()));
  CHECK(keys_of(summary) == std::set<std::string>{"rounds", "accuracy", "rows_per_s", "time_to_accuracy_s",
                                                  "parameters_equal", "digests_compared", "sync_bytes_sent",
                                                  "record_bytes_trained", "edge_ratio", "devices"});
  CHECK(summary["sync_bytes_sent"].get<double>() > 0);
  // A row is a label and 784 bytes.
  double rows = 0;
  for (const auto& device : summary["devices"]) rows += device["rows_trained"].get<double>();
  CHECK(summary["record_bytes_trained"].get<double>() == 785 * rows);
  CHECK(summary["parameters_equal"] == true);
  CHECK(summary["digests_compared"].get<int>() > 10);
  CHECK(summary["rounds"].get<int>() > 5);
  CHECK(summary["accuracy"].get<double>() > 0.7);
  REQUIRE(summary["devices"].size() == 2);
  for (const auto& device : summary["devices"]) {
    CHECK(keys_of(device) == std::set<std::string>{"id", "rows_consumed", "rows_trained", "rows_waiting",
                                                   "rows_dropped", "stream_rate", "batch_mean", "compute_s",
                                                   "wait_s", "sync_s", "cpu_s", "bytes_sent",
                                                   "bytes_received", "record_bytes_trained", "max_rss_bytes",
                                                   "first_step_s", "digest", "own", "restarts"});
    CHECK(device["restarts"] == 0);
    CHECK(device["bytes_sent"].get<double>() > 0);
    CHECK(device["digest"] == summary["devices"][0]["digest"]);
  }
  // Uneven streams: batch = rate × tick, so the fast one trains with larger batches.
  CHECK(summary["devices"][0]["batch_mean"].get<double>() >
        1.3 * summary["devices"][1]["batch_mean"].get<double>());
  CHECK(std::filesystem::exists(folder.path() / "kept" / "job.toml"));
  CHECK(std::filesystem::exists(folder.path() / "kept" / "device-2" / "final.state"));
  CHECK(contains(demo->errors(), "Next steps"));
  CHECK_FALSE(contains(demo->errors(), "\x1b"));
}

TEST_CASE("Demo: Ctrl-C ends everything it started and still prints the summary") {
  auto demo = start_demo({"--seconds", "60"});
  const auto children = all_four(*demo);
  REQUIRE(demo->wait_for_output("training", 30s));
  demo->send_signal_to_group(SIGINT);
  const auto ended = demo->wait(20s);
  REQUIRE(ended);
  CHECK(ended->code == 0);
  CHECK(alive(children).empty());
  CHECK(contains(demo->output(), "Interrupted"));
  CHECK(contains(demo->output(), "device-2"));
  CHECK(contains(demo->output(), "rows/s"));
  CHECK(contains(demo->output(), "Next steps"));
}

TEST_CASE("Demo: SIGTERM to it alone ends the others too, before they have found each other as well") {
  auto demo = start_demo({"--seconds", "60"});
  std::vector<pid_t> children;
  REQUIRE(wait_until([&] { return !(children = children_of(demo->pid())).empty(); }, 30s));
  demo->send_signal(SIGTERM);
  REQUIRE(demo->wait(20s));
  CHECK(alive(children).empty());
}

TEST_CASE("Demo: even kill -9 of it leaves nothing behind") {
  auto demo = start_demo({"--seconds", "60"});
  const auto children = all_four(*demo);
  demo->send_signal(SIGKILL);
  CHECK(wait_until([&] { return alive(children).empty(); }, 5s));
}

TEST_CASE("Demo: a broker that is not there is said within seconds") {
  const auto address = "127.0.0.1:" + std::to_string(free_port());
  auto demo = start_demo({"--brokers", address});
  const auto ended = demo->wait(20s);
  REQUIRE(ended);
  CHECK(ended->code == 69);
  CHECK(contains(demo->errors(), "cannot create topic rivulet-demo-"));
  CHECK(contains(demo->errors(), address + " did not answer the request within 8 s"));
}

TEST_CASE(
    "Demo: an elastic group loses a device for good, gains one and lets one go, and ends with equal models") {
  const TempDir folder;
  const auto kept = folder.path() / "kept";
  auto demo = start_demo({"--elastic", "--seconds", "30", "--json", "--keep", kept.string()}, "400,200,100");
  const auto ended = demo->wait(100s);
  REQUIRE(ended);
  INFO(demo->errors());
  CHECK(ended->code == 0);
  const auto summary = nlohmann::json::parse(last_line(demo->output()));
  CHECK(summary["parameters_equal"] == true);
  std::vector<std::string> what;
  for (const auto& change : summary["changes"]) {
    what.push_back(change["what"]);
    CHECK(change["gap_s"].get<double>() > 0);
  }
  REQUIRE(what == std::vector<std::string>{"killed", "added", "stopped"});
  const std::string killed = summary["changes"][0]["device"];
  const std::string stopped = summary["changes"][2]["device"];
  CHECK(summary["changes"][1]["device"] == "device-4");
  REQUIRE(summary["devices"].size() == 4);
  for (const auto& device : summary["devices"]) {
    const std::string id = device["id"];
    CAPTURE(id);
    CHECK(device["restarts"] == 0);
    CHECK(device["rows_trained"].get<double>() >
          0);  // those of device-4 are in the partition of the dead one
    CHECK(std::filesystem::exists(kept / id / "final.state") == (id != killed));
    const bool stays = id != killed && id != stopped;
    CHECK((device["digest"] == summary["devices"][0]["digest"]) == stays);
  }
  CHECK(contains(demo->errors(), "pulling the plug of " + killed));
  CHECK(contains(demo->errors(), "which takes the partition of " + killed));
  CHECK(contains(demo->errors(), stopped + " was stopped, and left; the others made no step for "));
  CHECK(contains(demo->errors(), "every row is accounted for"));
}
