// Devices on separate machines whose links fail.
#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "tests/support/machines.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr int devices = 2;

}  // namespace

TEST_CASE("Network: devices on machines of their own find addresses that the others reach, by themselves") {
  Machines machines(devices);
  machines.train(5);
  for (int i = 0; i < devices; ++i) CHECK(machines.group->device(i).running());
}

TEST_CASE("Network: a device beside the broker, at localhost, is reached where the cluster advertises it") {
  Machines machines(devices, {}, 0);
  machines.train(5);
  for (int i = 0; i < devices; ++i) CHECK(machines.group->device(i).running());
}

TEST_CASE("Network: a link that was down for 8 s holds the group up while it is down, and soon no longer") {
  Machines machines(devices);
  machines.train(5);
  machines.set_connected(1, false);
  REQUIRE(machines.group->device(0).runs_for(8s));
  machines.set_connected(1, true);
  const RealClock clock;
  const TimePoint whole = clock.now();
  const int before = machines.group->status(0).value("steps", 0);
  const bool goes_on = wait_until([&] { return machines.rounds_of_all() > before; }, 2s);
  INFO(machines.group->story());
  REQUIRE(goes_on);
  MESSAGE("after the link is whole: ", to_seconds(clock.now() - whole), " s");
  for (int i = 0; i < devices; ++i) CHECK(machines.group->device(i).running());
}

TEST_CASE("Network: SIGTERM ends devices on both sides of a link that is down") {
  Machines machines(devices, {"--set", "sync.deadline=2s"});
  machines.train(5);
  machines.set_connected(1, false);
  REQUIRE(machines.group->device(0).runs_for(4s));  // it is lost, and the others connect anew
  for (int i = 0; i < devices; ++i) machines.group->device(i).send_signal(SIGTERM);
  for (int i = 0; i < devices; ++i) {
    const auto ended = machines.group->device(i).wait(3s);  // 18 s: waiting for peers would take longer
    INFO(machines.group->story());
    REQUIRE(ended);
    CHECK(ended->signal == 0);
    CHECK(ended->code == 0);
  }
}
