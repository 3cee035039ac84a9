// Repeated forming of groups, and jobs that cannot run: one clear error that names the cause, within seconds,
// never a hang.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "tests/support/device_group.h"
#include "tests/support/places.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

// The default sync.deadline, plus the start of a process on a loaded machine.
constexpr Duration one_deadline = 5s;
constexpr Duration process_start = 5s;

DeviceGroupOptions group_of(int devices) {
  DeviceGroupOptions options;
  options.devices = devices;
  options.arguments = {"--set", "model.name=linear"};
  return options;
}

void kill_all(DeviceGroup& group, int devices) {
  for (int i = 0; i < devices; ++i) group.device(i).send_signal(SIGKILL);
  for (int i = 0; i < devices; ++i) REQUIRE(group.device(i).wait(10s));
}

/// Starts all; they form within one deadline and one process start after the last is up.
void form_in_time(DeviceGroup& group, int devices) {
  group.start_all();
  const bool in_time = group.formed(one_deadline + process_start);
  INFO(group.story());
  REQUIRE(in_time);
  for (int i = 0; i < devices; ++i) CHECK(group.device(i).running());
}

struct Refusal {
  int code = 0;
  bool timed_out = false;
  std::string said;  ///< last line of standard error
};

/// Runs a device that must fail.
Refusal refused(const std::string& brokers, const std::vector<std::string>& more,
                const std::string& config = "") {
  const TempDir folder;
  std::vector<std::string> arguments = {
      "run",   "--config", config.empty() ? source_path("examples/mnist/device.toml") : config,
      "--id",  "lonely",   "--brokers",
      brokers, "--set",    "model.name=linear"};
  const auto given = [&more](const char* flag) {
    return std::find(more.begin(), more.end(), flag) != more.end();
  };
  if (!given("--data-dir"))
    arguments.insert(arguments.end(), {"--data-dir", (folder.path() / "data").string()});
  if (!given("--http")) arguments.insert(arguments.end(), {"--http", "off"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  const RunOutput output = run_rivulet(arguments, 20s);
  INFO(output.errors);
  CHECK(last_line(output.errors).starts_with("error: "));
  return {output.status.code, output.timed_out, last_line(output.errors)};
}

struct Broker {
  std::unique_ptr<Process> process;
  std::string address;
};

Broker start_broker(const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"broker", "--job", "mnist", "--topic", "mnist:2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Broker broker{start_rivulet(arguments), ""};
  REQUIRE(broker.process->wait_for_output("runs until", 30s));
  const std::string line = broker.process->output().substr(0, broker.process->output().find('\n'));
  broker.address = line.substr(line.find('=') + 1);
  return broker;
}

/// A group that never formed has no side to take: both wait and name the difference, and end on request.
void check_both_wait(DeviceGroup& group, const std::vector<std::string>& words) {
  for (int i = 0; i < 2; ++i)
    for (const std::string& word : words)
      REQUIRE_MESSAGE(group.device(i).wait_for_output(word, 30s), group.story());
  for (int i = 0; i < 2; ++i) {
    CHECK_MESSAGE(group.device(i).running(), group.story());
    CHECK(group.status(i).value("state", "") == "forming");
    group.device(i).send_signal(SIGTERM);
  }
  for (int i = 0; i < 2; ++i) {
    const auto ended = group.device(i).wait(20s);
    REQUIRE_MESSAGE(ended, group.story());
    CHECK(ended->code == 0);
    CHECK(group.summary(i)["rounds"] == 0);
  }
}

}  // namespace

TEST_CASE("Forming: after kill -9 of all while forming the same job forms on the same control topic, twice") {
  DeviceGroup group(group_of(3));
  for (int life = 0; life < 2; ++life) {
    CAPTURE(life);
    group.start(0);
    group.start(1);
    for (int i = 0; i < 2; ++i) {
      REQUIRE_MESSAGE(
          group.device(i).wait_for_output(life == 0 ? "1 more device" : "waiting for device-2", 30s),
          group.story());
      group.device(i).send_signal(SIGKILL);
      REQUIRE(group.device(i).wait(10s));
    }
    form_in_time(group, 3);
    kill_all(group, 3);
  }
}

TEST_CASE("Forming: after kill -9 of all while training the same job forms and trains, twice") {
  DeviceGroup group(group_of(3));
  form_in_time(group, 3);
  group.feed(100);
  for (int life = 0; life < 2; ++life) {
    CAPTURE(life);
    REQUIRE_MESSAGE(group.trained(5, 30s), group.story());
    kill_all(group, 3);
    form_in_time(group, 3);
  }
  CHECK_MESSAGE(group.trained(5, 30s), group.story());
}

TEST_CASE("Forming: while it waits it says for whom") {
  DeviceGroup group(group_of(2));
  form_in_time(group, 2);
  kill_all(group, 2);
  group.start(0);
  CHECK(group.device(0).wait_for_output("device-1", 30s));
  CHECK(group.device(0).running());
}

TEST_CASE(
    "Forming: a process whose id is started again ends with 76 and names the newer one, also when it is "
    "alone") {
  for (const int devices : {1, 2}) {
    CAPTURE(devices);
    DeviceGroup group(group_of(devices));
    group.start(0);
    REQUIRE_MESSAGE(group.device(0).wait_for_output(devices == 1 ? "group formed" : "1 more device", 30s),
                    group.story());
    const TempDir folder;
    const auto newer = start_rivulet({"run", "--config", source_path("examples/mnist/device.toml"), "--id",
                                      DeviceGroup::name(0), "--partitions", "0", "--devices",
                                      std::to_string(devices), "--brokers", group.brokers(), "--http", "off",
                                      "--data-dir", folder.path().string(), "--set", "model.name=linear",
                                      "--set", "sync.on_peer_loss=" + group_of(devices).on_peer_loss});
    const auto ended = group.device(0).wait(20s);
    INFO(group.story());
    INFO(newer->errors());
    REQUIRE(ended);
    CHECK(ended->code == 76);
    CHECK(contains(last_line(group.device(0).errors()), "pid " + std::to_string(newer->pid())));
    CHECK(newer->running());
  }
}

TEST_CASE("Forming: configurations that differ in a new group are named, with key, values and devices") {
  DeviceGroup group(group_of(2));
  group.start(0);
  group.start(1, {"--set", "batch.tick=250ms"});
  check_both_wait(group, {"'batch.tick' is 100ms on device-0 and 250ms on device-1"});
}

TEST_CASE("Forming: a partition claimed twice in a new group is named, with the devices") {
  DeviceGroup group(group_of(2));
  group.start(0);
  group.start_on(0, 1);
  check_both_wait(group, {"partition mnist:0 is claimed by device-0 and by device-1"});
}

TEST_CASE("Forming: a control topic of two partitions is refused by name") {
  const auto broker = start_broker({"--topic", "rivulet.other.control:2"});
  const auto refusal = refused(broker.address, {"--set", "job.name=other"});
  CHECK_FALSE(refusal.timed_out);
  CHECK(refusal.code == 69);
  CHECK(contains(refusal.said, "rivulet.other.control"));
  CHECK(contains(refusal.said, "2 partitions"));
}

TEST_CASE("Forming: a topic, a partition, a broker that does not exist is named within seconds") {
  const auto broker = start_broker();
  const auto topic = refused(broker.address, {"--topic", "nosuch"});
  CHECK_FALSE(topic.timed_out);
  CHECK(topic.code == 69);
  CHECK(contains(topic.said, "\"nosuch\" does not exist"));
  const auto partition = refused(broker.address, {"--partitions", "7"});
  CHECK_FALSE(partition.timed_out);
  CHECK(partition.code == 69);
  CHECK(contains(partition.said, "\"mnist\", partition 7 does not exist"));
  const std::string nowhere = "127.0.0.1:" + std::to_string(free_port());
  const auto silent = refused(nowhere, {});
  CHECK_FALSE(silent.timed_out);
  CHECK(silent.code == 69);
  CHECK(contains(silent.said, nowhere));
}

TEST_CASE("Forming: a property that librdkafka does not take is refused in its words, with the line") {
  const TempDir folder;
  const auto with = [&folder](const std::string& property) {
    return folder
        .write("device.toml",
               "version = 1\n[job]\nname = \"mnist\"\n[source]\ntopics = [\"mnist\"]\n"
               "[source.kafka.properties]\nbootstrap.servers = \"127.0.0.1:1\"\n" +
                   property + "\n")
        .string();
  };
  const std::string unknown = with("fetch.wait.mx.ms = 5");
  const auto run_it =
      run_rivulet({"run", "--config", unknown, "--http", "off", "--data-dir", folder.path().string()}, 20s);
  CHECK(run_it.status.code == 78);
  CHECK(contains(run_it.errors, unknown + ":8:1: error:"));
  CHECK(contains(run_it.errors, "No such configuration property: \"fetch.wait.mx.ms\""));
  const auto validate_it = run_rivulet({"validate", unknown}, 20s);
  CHECK(validate_it.status.code == 78);
  CHECK(contains(validate_it.errors, unknown + ":8:1: error:"));
  const auto invalid =
      run_rivulet({"run", "--config", with("fetch.wait.max.ms = \"soon\""), "--http", "off"}, 20s);
  CHECK(invalid.status.code == 78);
  CHECK(contains(invalid.errors, ":8:1: error:"));
  CHECK(contains(invalid.errors, "Invalid value for configuration property \"fetch.wait.max.ms\""));
}

TEST_CASE("Forming: a port that is taken is exit 69 and named") {
  const auto broker = start_broker();  // its port is in use like any other
  const auto refusal = refused(broker.address, {"--http", broker.address});
  CHECK_FALSE(refusal.timed_out);
  CHECK(refusal.code == 69);
  CHECK(contains(refusal.said, broker.address + " is in use"));
  CHECK(contains(refusal.said, "http.listen"));
}

TEST_CASE("Forming: a data directory that cannot be is exit 78 and named") {
  const TempDir folder;
  const std::string file = folder.write("file", "not a folder").string();
  for (const std::string& path : {file, file + "/below", std::string("/proc/rivulet")}) {
    CAPTURE(path);
    const auto refusal = refused("127.0.0.1:1", {"--data-dir", path});
    CHECK_FALSE(refusal.timed_out);
    CHECK(refusal.code == 78);
    CHECK(contains(refusal.said, "device.data_dir " + path));
  }
}
