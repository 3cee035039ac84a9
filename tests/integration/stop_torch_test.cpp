// Ends and new starts of a job: `rivulet stop`, SIGTERM on one device, --new-run, two processes with one id.
// Real processes on a real Apache Kafka.
#include <doctest/doctest.h>

#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/clock.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "tests/support/device_group.h"
#include "tests/support/kafka_client.h"
#include "tests/support/kafka_server.h"
#include "tests/support/places.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr int group_size = 3;

/// One broker for all cases; each case has its own job and data topic.
const std::string& brokers() {
  static const auto server = [] {
    auto started = KafkaServer::start();
    REQUIRE(started);
    return std::move(started).value();
  }();
  return server->brokers();
}

class StopGroup {
 public:
  explicit StopGroup(const std::string& job) : job_(job), group_(options(job)) {}

  DeviceGroup& operator*() { return group_; }
  DeviceGroup* operator->() { return &group_; }
  void start_all(const std::vector<std::string>& more = {}) {
    for (int i = 0; i < group_size; ++i) group_.start(i, more);
  }
  void train(int steps) {
    REQUIRE_MESSAGE(group_.formed(60s), group_.story());
    REQUIRE_MESSAGE(group_.trained(steps, 60s), group_.story());
  }
  [[nodiscard]] RunOutput stop() const {
    return run_rivulet({"stop", "--job", job_, "--brokers", brokers(), "--timeout", "20s"}, 60s);
  }
  void expect_end(int device, int code) {
    const auto ended = group_.device(device).wait(20s);
    INFO(group_.story());
    CAPTURE(device);
    REQUIRE(ended);
    CHECK(ended->code == code);
  }
  void kill(int device) {
    group_.device(device).send_signal(SIGKILL);
    REQUIRE(group_.device(device).wait(10s));
  }
  [[nodiscard]] std::string phrase(int device) const {
    const auto status = group_.status(device);
    return status.is_object() ? status.value("phrase", "") : "";
  }
  [[nodiscard]] std::int64_t steps(int device) const {
    const auto status = group_.status(device);
    return status.is_object() ? status.value("steps", std::int64_t{-1}) : -1;
  }
  bool says(int device, const std::string& words, Duration deadline) {
    return wait_until([&] { return phrase(device) == words; }, deadline);
  }
  /// Of the newest checkpoint on the device's disk.
  [[nodiscard]] Stamp saved(int device) const {
    std::vector<std::string> problems;
    const auto all =
        runtime::CheckpointFolder(runtime::checkpoints_in(group_.directory(device))).list(problems);
    return all.empty() ? Stamp{} : all.front().stamp;
  }
  [[nodiscard]] std::string said_last(int device) { return last_line(group_.device(device).errors()); }

 private:
  static DeviceGroupOptions options(const std::string& job) {
    REQUIRE(create_topic(brokers(), job, group_size));
    DeviceGroupOptions options;
    options.devices = group_size;
    options.brokers = brokers();
    options.topic = job;
    options.on_peer_loss = "reform";
    options.arguments = {"--set", "job.name=" + job,  "--set", "model.name=linear",
                         "--set", "sync.deadline=2s", "--set", "batch.max_wait=200ms"};
    return options;
  }
  const std::string job_;
  DeviceGroup group_;
};

}  // namespace

TEST_CASE(
    "Stop: all devices end in the same round, saved and committed, and go on from there when started again") {
  StopGroup group("whole");
  group.start_all();
  group->feed(100);
  group.train(20);
  const auto stopped = group.stop();
  INFO(stopped.output, stopped.errors);
  CHECK(stopped.status.code == 0);
  CHECK(last_line(stopped.output) == "job whole has stopped");
  std::set<std::string> digests;
  std::set<std::int64_t> rounds;
  for (int i = 0; i < group_size; ++i) {
    group.expect_end(i, 0);
    const auto summary = group->summary(i);
    digests.insert(summary["devices"][0]["digest"].get<std::string>());
    rounds.insert(summary["rounds"].get<std::int64_t>());
    CHECK(group.saved(i).step == static_cast<std::uint64_t>(*rounds.begin()));
    const auto trained = summary["devices"][0]["rows_trained"].get<std::int64_t>();
    const auto committed = committed_offset(brokers(), "rivulet.whole", "whole", i);
    REQUIRE(committed);
    CHECK(committed.value() == trained);
  }
  CHECK(digests.size() == 1);
  CHECK(rounds.size() == 1);
  group.start_all();
  group.train(static_cast<int>(*rounds.begin()) + 5);
  for (int i = 0; i < group_size; ++i) CHECK(contains(group->device(i).errors(), "checkpoint loaded"));
  CHECK(group.stop().status.code == 0);
}

TEST_CASE("Stop: a group that forms ends, too; what it holds is on the disk, and who was lost is named") {
  StopGroup group("forming");
  for (int i = 0; i < 2; ++i) group->start(i);
  REQUIRE(group.says(0, "forming: waiting for 1 more device", 30s));
  REQUIRE(group.says(1, "forming: waiting for 1 more device", 30s));
  auto stopped = group.stop();
  INFO(stopped.output, stopped.errors);
  CHECK(stopped.status.code == 0);
  for (int i = 0; i < 2; ++i) group.expect_end(i, 0);

  group.start_all();
  group->feed(100);
  group.train(20);
  group.kill(2);
  for (int i = 0; i < 2; ++i)
    REQUIRE_MESSAGE(group.says(i, "forming: waiting for device-2", 20s), group->story());
  const auto held = group.steps(0);
  stopped = group.stop();
  INFO(stopped.output, stopped.errors);
  CHECK(stopped.status.code == 0);
  CHECK(contains(stopped.output, "device-2 (host "));
  CHECK(contains(stopped.output, "did not confirm: its peers had lost it before"));
  for (int i = 0; i < 2; ++i) group.expect_end(i, 0);
  CHECK(std::max(group.saved(0), group.saved(1)).step >= static_cast<std::uint64_t>(held));
}

TEST_CASE("Stop: a job that nobody runs, a job that never was, and a broker that is not there") {
  StopGroup group("nobody");
  group->start(0);
  REQUIRE(group.says(0, "forming: waiting for 2 more devices", 30s));
  group->device(0).send_signal(SIGTERM);
  group.expect_end(0, 0);
  const auto stopped = group.stop();
  CHECK(stopped.status.code == 0);
  CHECK(contains(stopped.output, "no device of job nobody was running"));
  const auto never = run_rivulet({"stop", "--job", "never", "--brokers", brokers()}, 30s);
  CHECK(never.status.code == 69);
  CHECK(contains(last_line(never.errors), "\"rivulet.never.control\" does not exist"));
  const std::string nowhere = "127.0.0.1:" + std::to_string(free_port());
  const auto silent = run_rivulet({"stop", "--job", "never", "--brokers", nowhere}, 30s);
  CHECK(silent.status.code == 69);
  CHECK(contains(last_line(silent.errors), nowhere));
  CHECK(run_rivulet({"stop", "--brokers", brokers()}, 30s).status.code == 2);
  CHECK(run_rivulet({"stop", "--job", "x", "--brokers", brokers(), "--timeout", "soon"}, 30s).status.code ==
        2);
}

TEST_CASE("Stop: SIGTERM ends one device; the others wait for it by name and go on with it") {
  StopGroup group("one");
  group.start_all();
  group->feed(100);
  group.train(10);
  group->device(1).send_signal(SIGTERM);
  group.expect_end(1, 0);
  const auto left = group->summary(1)["rounds"].get<std::int64_t>();
  for (const int i : {0, 2}) {
    CHECK_MESSAGE(group.says(i, "forming: waiting for device-1", 20s), group->story());
    CHECK(group->status(i).value("state", "") == "forming");
    CHECK(group->device(i).running());
    CHECK(group.steps(i) == left);
  }
  group->start(1);
  CHECK_MESSAGE(group->trained(static_cast<int>(left) + 10, 60s), group->story());
  // Foreign records in the control topic are counted and have no effect.
  REQUIRE(produce(brokers(), "rivulet.one.control",
                  {{"noise", "", 0}, {std::string(100'000, '{'), "", 0}, {"[]", "", 0}}));
  const auto counted = [&](const std::string& reason, int records) {
    const std::string line = "rivulet_control_records_ignored_total{reason=\"" + reason + "\"} ";
    return wait_until([&] { return contains(group->metrics(0), line + std::to_string(records)); }, 10s);
  };
  CHECK_MESSAGE(counted("unreadable", 2), group->metrics(0));
  CHECK(counted("oversized", 1));
  CHECK_MESSAGE(group->trained(static_cast<int>(left) + 20, 60s), group->story());
  CHECK(group.stop().status.code == 0);
}

TEST_CASE("New run: all start over, old checkpoints are kept aside, and nobody falls into it by accident") {
  StopGroup group("again");
  group.start_all();
  group->feed(100);
  group.train(30);
  // Rejected while a run is active, and nothing is moved.
  group.kill(1);
  group->start(1, {"--new-run"});
  group.expect_end(1, 78);
  CHECK(contains(group.said_last(1), "run 1 of job again has not ended: device-0 (host "));
  CHECK(contains(group.said_last(1), "rivulet stop --job again"));
  CHECK_FALSE(std::filesystem::exists(group->directory(1) + "/checkpoints/before-1"));
  group->start(1);
  REQUIRE_MESSAGE(group->trained(35, 60s), group->story());
  REQUIRE(group.stop().status.code == 0);
  const auto old = group.saved(2);
  group->stop_feeding();

  // device-2 did not get the flag: it reports that and does not roll the others back.
  for (int i = 0; i < 2; ++i) group->start(i, {"--new-run"});
  for (int i = 0; i < 2; ++i)
    REQUIRE_MESSAGE(group.says(i, "forming: waiting for 1 more device", 30s), group->story());
  group->start(2);
  group.expect_end(2, 78);
  CHECK(contains(group.said_last(2),
                 "of device-2 belongs to an earlier run: run 2 of job again began after view"));
  CHECK(contains(group.said_last(2), "--new-run"));
  group->start(2, {"--new-run"});
  REQUIRE_MESSAGE(group->formed(60s), group->story());
  for (int i = 0; i < group_size; ++i) {
    CHECK(std::filesystem::exists(group->directory(i) + "/checkpoints/before-1"));
    CHECK_FALSE(contains(group->device(i).errors(), "checkpoint loaded"));
    CHECK(group->status(i).value("view", 0U) > old.lineage);
  }
  const runtime::CheckpointFolder kept(group->directory(2) + "/checkpoints/before-1");
  std::vector<std::string> problems;
  REQUIRE_FALSE(kept.list(problems).empty());
  CHECK(kept.list(problems).front().stamp == old);

  // A supervisor restarts a killed device with the same command: it resumes in the run.
  group->feed(100);
  REQUIRE_MESSAGE(group->trained(20, 60s), group->story());
  group.kill(0);
  group->start(0, {"--new-run"});
  CHECK_MESSAGE(group->trained(25, 60s), group->story());
  CHECK(group.stop().status.code == 0);
  CHECK(group.saved(0).step > 20);
  CHECK_FALSE(std::filesystem::exists(group->directory(0) + "/checkpoints/before-2"));
}

TEST_CASE("New run: a group that has lost every checkpoint of what it saved does not start over by itself") {
  StopGroup group("lost");
  group.start_all();
  group->feed(100);
  group.train(10);
  REQUIRE(group.stop().status.code == 0);
  for (int i = 0; i < group_size; ++i)
    std::filesystem::remove_all(runtime::checkpoints_in(group->directory(i)));
  group.start_all();
  for (int i = 0; i < group_size; ++i) {
    group.expect_end(i, 78);
    CHECK(contains(group.said_last(i), "is on none of device-0, device-1, device-2"));
    CHECK(contains(group.said_last(i), "--new-run"));
  }
  group.start_all({"--new-run"});
  group.train(5);
}

TEST_CASE("Two processes with one id: the newer wins and is named; a third swap in five minutes ends both") {
  StopGroup group("twice");
  const TempDir folder;
  std::array<char, 256> name{};
  REQUIRE(::gethostname(name.data(), name.size() - 1) == 0);
  const std::string host = name.data();
  std::vector<std::unique_ptr<Process>> lives;
  for (int i = 0; i < 4; ++i) {
    lives.push_back(start_rivulet({"run",
                                   "--config",
                                   source_path("examples/mnist/device.toml"),
                                   "--id",
                                   "twin",
                                   "--partitions",
                                   "0",
                                   "--devices",
                                   "2",
                                   "--topic",
                                   "twice",
                                   "--brokers",
                                   brokers(),
                                   "--http",
                                   "off",
                                   "--data-dir",
                                   (folder.path() / std::to_string(i)).string(),
                                   "--set",
                                   "model.name=linear",
                                   "--set",
                                   "job.name=twice",
                                   "--set",
                                   "sync.on_peer_loss=reform"}));
    // The last one may receive STOP before it has reported what it waits for.
    if (i < 3) REQUIRE(lives.back()->wait_for_output("1 more device", 30s));
    if (i == 0) continue;
    const auto older = lives[static_cast<std::size_t>(i) - 1]->wait(20s);
    const std::string said = lives[static_cast<std::size_t>(i) - 1]->errors();
    INFO(said);
    REQUIRE(older);
    CHECK(older->code == 76);
    CHECK(contains(last_line(said), host + " (pid " + std::to_string(lives.back()->pid()) + ")"));
  }
  const auto newest = lives.back()->wait(20s);
  INFO(lives.back()->errors());
  REQUIRE(newest);
  CHECK(newest->code == 76);
  const std::string said = last_line(lives.back()->errors());
  CHECK(contains(said, "device twin was started in two places"));
  CHECK(contains(said, host + " (pid " + std::to_string(lives[2]->pid()) + ")"));
}
