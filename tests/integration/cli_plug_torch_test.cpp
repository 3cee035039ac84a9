// Ends the demo's devices: by kill -9 or SIGTERM, one or all.
#include <doctest/doctest.h>

#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/effort.h"
#include "tests/support/places.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;
using Json = nlohmann::json;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

int times_in(const std::string& text, const std::string& part) {
  int times = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
  return times;
}

/// `rivulet demo --json` in a folder that is kept; the view is on stderr.
class PluggedDemo {
 public:
  PluggedDemo(int devices, const std::string& rates, int seconds) {
    ProcessOptions options;
    options.command = {rivulet_binary(), "demo",
                       "--model",        "linear",
                       "--devices",      std::to_string(devices),
                       "--rates",        rates,
                       "--seconds",      std::to_string(seconds),
                       "--json",         "--keep",
                       kept().string()};
    auto started = Process::start(options);
    REQUIRE(started);
    demo_ = std::move(started).value();
  }
  Process& process() { return *demo_; }
  [[nodiscard]] std::filesystem::path kept() const { return folder_.path() / "kept"; }

  /// Running devices: name -> pid.
  [[nodiscard]] std::map<std::string, pid_t> pids() const {
    std::map<std::string, pid_t> found;
    for (const auto pid : children_of(demo_->pid())) {
      const auto line = text_of("/proc/" + std::to_string(pid) + "/cmdline");
      const std::string flag = std::string("--id") + '\0';
      const auto at = line.find(flag);
      if (at != std::string::npos) found[line.c_str() + at + flag.size()] = pid;
    }
    return found;
  }
  /// From the newest checkpoint of this device and the broker; {} if there is none yet.
  [[nodiscard]] Json ledger(const std::string& device, bool offline = false) const {
    ProcessOptions options;
    options.command = {rivulet_binary(), "ledger",
                       "show",           "--json",
                       "--config",       (kept() / "job.toml").string(),
                       "--data-dir",     (kept() / device).string()};
    if (offline) options.command.emplace_back("--offline");
    const auto shown = run(options, 20s);
    return shown.status.code == 0 ? Json::parse(shown.output) : Json::object();
  }
  [[nodiscard]] int times_formed(const std::string& device) const {
    return times_in(text_of(kept() / (device + ".log")), "group formed");
  }
  bool wait_for(const std::string& text, Duration deadline) { return demo_->wait_for_output(text, deadline); }
  /// Waits for its successful end; returns the object in its last line.
  Json summary(Duration deadline) {
    const auto ended = demo_->wait(deadline);
    REQUIRE(ended);
    INFO(demo_->errors());
    CHECK(ended->code == 0);
    CHECK(contains(demo_->errors(), "every row is accounted for"));
    const auto said = Json::parse(last_line(demo_->output()));
    CHECK(said["parameters_equal"] == true);
    for (const auto& device : said["devices"]) CHECK(device["digest"] == said["devices"][0]["digest"]);
    check_ledger();
    return said;
  }

 private:
  /// From the first row on: each was trained once in the group's final state.
  void check_ledger() const {
    for (const auto& one : ledger("device-1", true)["partitions"]) {
      CHECK(one["start"] == Json::array({0, 0}));
      CHECK(one["next"][0] == one["rows_trained"]);
      CHECK(one["rows_dropped"].empty());
      CHECK(one["holes"] == 0);
      CHECK(one["balanced"] == true);
    }
  }

  TempDir folder_;
  std::unique_ptr<Process> demo_;
};

std::vector<int> restarts_in(const Json& summary) {
  std::vector<int> restarts;
  for (const auto& device : summary["devices"]) restarts.push_back(device["restarts"].get<int>());
  return restarts;
}

}  // namespace

TEST_CASE("Plug: kill -9 of the device with 800 rows/s; the others wait for it, its rows are still there") {
  PluggedDemo demo(3, "800,200,100", 24);
  // The embedded broker drops old records: long enough that the beginning of its log is deleted before the
  // kill.
  Json before;
  REQUIRE(wait_until(
      [&] {
        before = demo.ledger("device-2");
        return before.contains("partitions") && before["partitions"][0]["low_watermark"].get<int>() > 0;
      },
      40s));
  const auto pids = demo.pids();
  REQUIRE(pids.size() == 3);
  const auto victim = std::to_string(pids.at("device-1"));
  CHECK(contains(demo.process().errors(), "device-1: pid " + victim));
  CHECK(contains(demo.process().errors(), "kill -9 PID"));
  ::kill(pids.at("device-1"), SIGKILL);
  REQUIRE(demo.wait_for("device-1 (pid " + victim + ") was killed; restarting it", 5s));
  REQUIRE(demo.wait_for("forming: waiting for device-1", 5s));
  REQUIRE(demo.wait_for("device-1 restarted as pid ", 5s));
  const auto missed = demo.ledger("device-2")["partitions"][0];
  CHECK(missed["balanced"] == true);
  report_figure("rows that waited in the embedded broker for a killed device",
                missed["waiting"].get<double>(), "rows");
  report_figure("rows behind them that it still had",
                missed["next"][0].get<double>() - missed["low_watermark"].get<double>(), "rows");
  REQUIRE(wait_until([&] { return demo.times_formed("device-1") == 2; }, 15s));
  const auto after = demo.pids();
  REQUIRE(after.size() == 3);
  CHECK(after.at("device-1") != pids.at("device-1"));
  CHECK(after.at("device-2") == pids.at("device-2"));
  CHECK(after.at("device-3") == pids.at("device-3"));
  const auto summary = demo.summary(60s);
  CHECK(restarts_in(summary) == std::vector<int>{1, 0, 0});
  CHECK(summary["accuracy"].get<double>() > 0.7);
  CHECK(contains(demo.process().errors(), "device-1 was restarted once"));
}

TEST_CASE("Plug: kill -9 of all devices at once; the group goes on from what it has saved") {
  PluggedDemo demo(2, "400,100", 14);
  Json before;
  REQUIRE(wait_until([&] { return (before = demo.ledger("device-2")).value("rows", 0) > 0; }, 30s));
  for (const auto& [name, pid] : demo.pids()) ::kill(pid, SIGKILL);
  REQUIRE(demo.wait_for("device-1 restarted as pid ", 10s));
  REQUIRE(demo.wait_for("device-2 restarted as pid ", 10s));
  const auto summary = demo.summary(60s);
  CHECK(restarts_in(summary) == std::vector<int>{1, 1});
  // Not from the beginning.
  CHECK(contains(text_of(demo.kept() / "device-1.log"), "group formed"));
  CHECK(summary["rounds"].get<int>() > before["step"].get<int>());
  CHECK(demo.times_formed("device-1") == 2);
}

TEST_CASE("Plug: a device that is asked to go, alone, is missed and comes back") {
  PluggedDemo demo(2, "400,100", 24);  // seconds also count while a device is missing
  REQUIRE(wait_until([&] { return demo.times_formed("device-2") == 1; }, 30s));
  const auto victim = demo.pids().at("device-2");
  ::kill(victim, SIGTERM);
  REQUIRE(demo.wait_for("device-2 (pid " + std::to_string(victim) + ") has exited; restarting it", 10s));
  CHECK(restarts_in(demo.summary(60s)) == std::vector<int>{0, 1});
}

TEST_CASE("Plug: a device that fails by itself is named with its last words, and everything ends") {
  PluggedDemo demo(2, "400,100", 60);
  REQUIRE(wait_until([&] { return demo.times_formed("device-2") == 1; }, 30s));
  const auto children = children_of(demo.process().pid());
  std::string reason;
  SUBCASE("with an exit code: another process has taken its place") {
    ProcessOptions twin;
    twin.command = {
        rivulet_binary(), "run", "--config",   (demo.kept() / "job.toml").string(), "--id",   "device-2",
        "--partitions",   "1",   "--data-dir", (demo.kept() / "twin").string(),     "--http", "off"};
    auto started = Process::start(twin);
    REQUIRE(started);
    REQUIRE(demo.process().wait(30s));
    reason = "device-2 exited with code 76; last lines of its log:";
  }
  SUBCASE("with a signal of its own") {
    ::kill(demo.pids().at("device-2"), SIGSEGV);
    REQUIRE(demo.process().wait(20s));
    reason = "device-2 was killed by signal 11; last lines of its log:";
  }
  const auto ended = demo.process().wait(1s);
  CHECK(ended->code == 69);
  INFO(demo.process().errors());
  CHECK(contains(demo.process().errors(), reason));
  CHECK_FALSE(contains(demo.process().errors(), "restarting it"));
  for (const auto pid : children) {
    const auto stats = read_process_stats(pid);
    CHECK((!stats || stats->state == 'Z'));
  }
}
