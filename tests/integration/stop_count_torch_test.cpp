// --stop-after counts on the group's clock: across the deaths of all processes, and between runs.
#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/support/device_group.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr int group_size = 2;

void kill_all(DeviceGroup& group) {
  for (int i = 0; i < group_size; ++i) group.device(i).send_signal(SIGKILL);
  for (int i = 0; i < group_size; ++i) REQUIRE(group.device(i).wait(10s));
}

/// Of the final state of every device.
std::int64_t rounds_at_end(DeviceGroup& group) {
  std::int64_t rounds = -1;
  for (int i = 0; i < group_size; ++i) {
    const auto ended = group.device(i).wait(60s);
    INFO(group.story());
    REQUIRE(ended);
    CHECK(ended->code == 0);
    rounds = group.summary(i)["rounds"].get<std::int64_t>();
    CHECK(rounds == group.summary(0)["rounds"].get<std::int64_t>());
  }
  return rounds;
}

}  // namespace

TEST_CASE("Stop: --stop-after rounds counts on when all devices were killed and started again, and again") {
  DeviceGroup group({.devices = group_size,
                     .on_peer_loss = "reform",
                     .arguments = {"--stop-after", "rounds=50", "--set", "model.name=linear", "--set",
                                   "batch.tick=40ms", "--set", "checkpoint.every.rounds=5"}});
  group.start_all();
  group.feed(400);
  for (const int steps : {20, 32}) {  // each process sees fewer than 50 of them
    REQUIRE_MESSAGE(group.formed(60s), group.story());
    REQUIRE_MESSAGE(group.trained(steps, 60s), group.story());
    kill_all(group);
    group.start_all();
  }
  CHECK(rounds_at_end(group) == 50);
  CHECK(contains(group.device(0).errors(), "--stop-after counts from the start of this run of the group"));

  group.start_all();  // a later run on the same state
  CHECK(rounds_at_end(group) == 100);
}
