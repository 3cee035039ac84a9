// Reaction of a running group when one device dies, hangs or leaves: processes, broker and Gloo as in
// production. The group's deadline is short, and so are the bounds of the tests.
#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/clock.h"
#include "tests/support/device_group.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr Duration deadline = 2s;
constexpr Duration bound = deadline + 1s;  // the guarantee: detected within deadline + 1 s, everywhere

DeviceGroupOptions quick_group(int devices, const std::vector<std::string>& more = {}) {
  DeviceGroupOptions options;
  options.devices = devices;
  options.arguments = {
      "--set", "model.name=linear", "--set", "sync.deadline=2s", "--set", "batch.max_wait=200ms",
      // With local steps a silent peer is only late when they should have ended.
      "--set", "sync.policy=every", "--set", "sync.collective=gather", "--set", "compression.policy=none"};
  options.arguments.insert(options.arguments.end(), more.begin(), more.end());
  return options;
}

DeviceGroup& ready(DeviceGroup& group) {
  group.start_all();
  REQUIRE_MESSAGE(group.formed(60s), group.story());
  return group;
}

void train(DeviceGroup& group, int steps = 5) {
  group.feed(100);
  REQUIRE_MESSAGE(group.trained(steps, 60s), group.story());
}

/// Effect of a lost device on its connections.
enum class Loss { breaks, hangs };

/// All except `lost` exit with 75 within deadline + 1 s of `since`, name it, and have the bits of the same
/// step, or of two adjacent ones.
void check_others_stop(DeviceGroup& group, int devices, int lost, TimePoint since, Loss loss = Loss::breaks) {
  const RealClock clock;
  std::map<int, std::set<std::string>> digests;  // by step
  int named = 0;
  for (int i = 0; i < devices; ++i) {
    if (i == lost) continue;
    // All have the same time, counted from the loss: the first one to be looked at takes nothing from the
    // others.
    const Duration left = since + deadline_slack * bound - clock.now();
    const auto ended = group.device(i).wait(left / deadline_slack);
    INFO(group.story());
    CAPTURE(i);
    REQUIRE(ended);
    CHECK(ended->code == 75);
    const std::string said = last_line(group.device(i).errors());
    CHECK(said.starts_with("error: "));
    named += contains(said, DeviceGroup::name(lost)) ? 1 : 0;
    const auto summary = group.summary(i);
    digests[summary["rounds"].get<int>()].insert(summary["devices"][0]["digest"].get<std::string>());
  }
  CAPTURE(named);
  // Only a hanging device keeps its connections: a device with all of its messages waits for another one,
  // which waits for it.
  CHECK((loss == Loss::hangs ? named > 0 : named == devices - 1));
  // A device that had the dead one's whole last payload finished the round; a part of it changed no state.
  CHECK(digests.rbegin()->first - digests.begin()->first <= 1);
  for (const auto& [step, same] : digests) CHECK(same.size() == 1);
}

}  // namespace

TEST_CASE("Death: kill -9 while training is known to all within the deadline plus a second, and named") {
  for (const int lost : {0, 2}) {
    CAPTURE(lost);
    DeviceGroup group(quick_group(4));
    train(ready(group));
    const auto since = RealClock().now();
    group.device(lost).send_signal(SIGKILL);
    check_others_stop(group, 4, lost, since);
  }
}

TEST_CASE("Death: kill -9 in the middle of a payload on a link of 20 Mbit/s is known as fast") {
  if (std::getenv("SHAPED_LOOPBACK") == nullptr) {
    // Repeats the test where this machine's loopback is such a link.
    const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
    const auto inside =
        run({.command = {"unshare", "--net", "sh", "-c",
                         "ip link set lo mtu 1500 up && tc qdisc add dev lo root tbf rate 20mbit burst 128kb "
                         "latency 1s && exec \"$0\" '--test-case=Death: kill -9 in the middle*'",
                         self},
             .environment = {{"SHAPED_LOOPBACK", "1"}}},
            150s);
    INFO(inside.output);
    INFO(inside.errors);
    CHECK(inside.status.code == 0);
    return;
  }
  DeviceGroupOptions options;
  options.devices = 3;
  options.arguments = {"--set", "sync.policy=every",      "--set", "compression.policy=none",
                       "--set", "sync.collective=gather", "--set", "model.name=mlp",
                       "--set", "model.mlp.hidden=[256]", "--set", "sync.deadline=2s"};
  DeviceGroup group(options);
  ready(group);
  group.feed(60);
  REQUIRE_MESSAGE(group.trained(5, 90s), group.story());
  const auto status = group.status(0);
  const double paying = status["sync_s"].get<double>() / status["seconds_training"].get<double>();
  // Three devices, 814 kB to each peer: most of a round is payload, and on a slow machine a large part.
  CHECK(paying > 0.4);
  const auto since = RealClock().now();
  group.device(1).send_signal(SIGKILL);
  check_others_stop(group, 3, 1, since);
}

TEST_CASE("Death: kill -9 in a group that has nothing to do is known as fast") {
  DeviceGroup group(quick_group(3));
  ready(group);
  REQUIRE(group.idle(30s));
  const auto since = RealClock().now();
  group.device(1).send_signal(SIGKILL);
  check_others_stop(group, 3, 1, since);
}

TEST_CASE("Death: kill -9 after the stream has dried up is known as fast") {
  DeviceGroup group(quick_group(3));
  train(ready(group));
  group.stop_feeding();
  REQUIRE(group.idle(30s));
  const auto since = RealClock().now();
  group.device(0).send_signal(SIGKILL);
  check_others_stop(group, 3, 0, since);
}

TEST_CASE("Death: a process that is stopped, not dead, counts as lost; continued, it ends, too") {
  for (const int lost : {0, 2}) {
    CAPTURE(lost);
    DeviceGroup group(quick_group(3));
    train(ready(group));
    const auto since = RealClock().now();
    group.device(lost).send_signal(SIGSTOP);
    check_others_stop(group, 3, lost, since, Loss::hangs);
    CHECK(group.device(lost).stats()->state == 'T');
    group.device(lost).send_signal(SIGCONT);
    const auto ended = group.device(lost).wait(10s);
    INFO(group.device(lost).errors());
    REQUIRE(ended);
    CHECK(ended->signal == 0);
    // Its watchdog may detect the pause before the transport does: both are correct.
    CHECK((ended->code == 75 || ended->code == 70));
  }
}

TEST_CASE("Death: SIGTERM lets this device finish and exit with 0; the others stop with 75 and name it") {
  for (const int leaving : {0, 1}) {
    CAPTURE(leaving);
    DeviceGroup group(quick_group(3));
    train(ready(group));
    const auto since = RealClock().now();
    group.device(leaving).send_signal(SIGTERM);
    const auto ended = group.device(leaving).wait(10s);
    INFO(group.story());
    REQUIRE(ended);
    CHECK(ended->code == 0);
    CHECK(group.summary(leaving)["rounds"].get<int>() >= 5);
    check_others_stop(group, 3, leaving, since + 10s);
  }
}

TEST_CASE("Death: SIGTERM before the group has formed is an exit with 0") {
  DeviceGroup group(quick_group(2));
  group.start(0);
  REQUIRE_MESSAGE(group.device(0).wait_for_output("starting", 30s), group.story());
  group.device(0).send_signal(SIGTERM);
  const auto ended = group.device(0).wait(10s);
  INFO(group.story());
  REQUIRE(ended);
  CHECK(ended->code == 0);
}

TEST_CASE("Death: SIGTERM ends a device within 10 s also while a peer hangs and sync.deadline is long") {
  DeviceGroup group(quick_group(2, {"--set", "sync.deadline=10m"}));
  train(ready(group));
  group.device(1).send_signal(SIGSTOP);
  CHECK(group.device(0).runs_for(1s));
  group.device(0).send_signal(SIGTERM);
  CHECK(group.device(0).runs_for(4s));  // gives the peer time to react
  const auto ended = group.device(0).wait(6s);
  INFO(group.story());
  REQUIRE(ended);
  CHECK(ended->code == 0);
  CHECK(contains(group.device(0).errors(), "left before the round ended"));
  CHECK(group.summary(0)["rounds"].get<int>() >= 5);
  group.device(1).send_signal(SIGCONT);
}

TEST_CASE("Death: a second SIGTERM ends a device that cannot finish its round, at once") {
  DeviceGroup group(quick_group(2, {"--set", "sync.deadline=10m"}));
  train(ready(group));
  group.device(1).send_signal(SIGSTOP);  // from now on device 0 waits for it
  CHECK(group.device(0).runs_for(1s));
  group.device(0).send_signal(SIGTERM);
  CHECK(group.device(0).runs_for(500ms));
  group.device(0).send_signal(SIGTERM);
  const auto ended = group.device(0).wait(1s);
  REQUIRE(ended);
  CHECK(ended->signal == 0);
  CHECK(ended->code == 1);
  group.device(1).send_signal(SIGCONT);
}

TEST_CASE("Death: an agreed end is nobody's death: all exit 0 after the same round with the same bits") {
  DeviceGroup group(quick_group(4, {"--stop-after", "rounds=25"}));
  ready(group);
  group.feed(100);
  std::set<std::string> digests;
  for (int i = 0; i < 4; ++i) {
    const auto ended = group.device(i).wait(60s);
    INFO(group.story());
    REQUIRE(ended);
    CHECK(ended->code == 0);
    const auto summary = group.summary(i);
    CHECK(summary["rounds"].get<int>() == 25);
    CHECK(summary["parameters_equal"] == true);
    digests.insert(summary["devices"][0]["digest"].get<std::string>());
  }
  CHECK(digests.size() == 1);
}
