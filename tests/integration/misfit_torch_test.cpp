// Real processes: a device that does not fit into a formed group ends alone; the members keep waiting.
#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/support/device_group.h"
#include "tests/support/places.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

DeviceGroupOptions group_of(int devices) {
  DeviceGroupOptions options;
  options.devices = devices;
  options.on_peer_loss = "reform";
  options.arguments = {"--set", "model.name=linear", "--set", "checkpoint.every.interval=1s"};
  return options;
}

void form_and_train(DeviceGroup& group) {
  group.start_all();
  REQUIRE_MESSAGE(group.formed(30s), group.story());
  group.feed(100);
  REQUIRE_MESSAGE(group.trained(5, 60s), group.story());
}

/// A process with an id of the group.
std::unique_ptr<Process> stranger(const DeviceGroup& group, const TempDir& folder, const std::string& id,
                                  const std::string& devices, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run",
                                        "--config",
                                        source_path("examples/mnist/device.toml"),
                                        "--id",
                                        id,
                                        "--devices",
                                        devices,
                                        "--brokers",
                                        group.brokers(),
                                        "--http",
                                        "off",
                                        "--data-dir",
                                        (folder.path() / id).string(),
                                        "--set",
                                        "model.name=linear",
                                        "--set",
                                        "sync.on_peer_loss=reform",
                                        "--set",
                                        "checkpoint.every.interval=1s"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return start_rivulet(arguments);
}

void check_ends(Process& process, int code, const std::string& words) {
  const auto ended = process.wait(30s);
  INFO(process.errors());
  REQUIRE(ended);
  CHECK(ended->code == code);
  const std::string said = last_line(process.errors());
  CHECK(said.starts_with("error: "));
  CHECK_MESSAGE(contains(said, words), said);
}

}  // namespace

TEST_CASE("Misfit: two of three wait; one with another value ends alone with 78; the third comes back") {
  DeviceGroup group(group_of(3));
  form_and_train(group);
  const TempDir folder;
  group.device(2).send_signal(SIGKILL);
  REQUIRE(group.device(2).wait(10s));
  for (const int i : {0, 1})
    REQUIRE_MESSAGE(group.device(i).wait_for_output("forming: waiting for device-2", 30s), group.story());
  const auto wrong =
      stranger(group, folder, "device-9", "3", {"--partitions", "2", "--set", "train.optimizer.lr=0.5"});
  check_ends(*wrong, 78,
             " on device-0 and 0.5 on device-9. The group keeps the configuration of its last view");
  CHECK(contains(group.device(0).errors(), "device-9 to leave ('train.optimizer.lr' is "));
  const auto claims = stranger(group, folder, "device-8", "3", {"--partitions", "1"});
  check_ends(*claims, 78, "partition mnist:1 is claimed by device-1 and by device-8");
  for (const int i : {0, 1}) {
    CHECK_MESSAGE(group.device(i).running(), group.story());
    CHECK(group.status(i).value("state", "") == "forming");
  }
  const auto steps = group.status(0).value("steps", 0);
  group.start(2);
  CHECK_MESSAGE(group.trained(steps + 5, 60s), group.story());
}

TEST_CASE("Misfit: a second process of a device that cannot take its place ends, and the device trains on") {
  DeviceGroup group(group_of(1));
  form_and_train(group);
  REQUIRE_MESSAGE(
      wait_until([&] { return contains(group.metrics(0), "rivulet_checkpoints_total{result=\"ok\"} "); },
                 30s),
      group.story());
  const TempDir folder;
  const auto again = stranger(group, folder, "device-0", "1", {"--partitions", "0"});
  check_ends(*again, 78, "device device-0 is running on host ");
  CHECK(contains(last_line(again->errors()), "is on no other device"));
  const auto steps = group.status(0).value("steps", 0);
  CHECK_MESSAGE(group.trained(steps + 5, 60s), group.story());
}

TEST_CASE("Misfit: a partition that a smaller group leaves behind is said in log, status and metrics") {
  DeviceGroup group(group_of(2));
  form_and_train(group);
  for (const int i : {0, 1}) CHECK(group.status(i)["unclaimed_partitions"].empty());
  CHECK(run_rivulet({"stop", "--job", "mnist", "--brokers", group.brokers()}, 60s).status.code == 0);
  for (const int i : {0, 1}) REQUIRE(group.device(i).wait(30s));
  group.start(0, {"--devices", "1"});
  REQUIRE_MESSAGE(group.device(0).wait_for_output("no device of the group claims mnist:1", 30s),
                  group.story());
  const auto says = [&](const std::vector<std::string>& names, const std::string& count) {
    return wait_until(
        [&] {
          const auto status = group.status(0);  // null before its page exists
          return status.is_object() &&
                 status.value("unclaimed_partitions", std::vector<std::string>{"?"}) == names &&
                 contains(group.metrics(0), "rivulet_unclaimed_partitions " + count + "\n");
        },
        30s);
  };
  CHECK_MESSAGE(says({"mnist:1"}, "1"), group.metrics(0));
  group.device(0).send_signal(SIGTERM);
  REQUIRE(group.device(0).wait(30s));
  group.start(0, {"--devices", "1", "--partitions", "0-1"});
  CHECK_MESSAGE(says({}, "0"), group.metrics(0));
}
