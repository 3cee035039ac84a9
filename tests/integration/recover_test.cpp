// A single real device resumes from an older checkpoint if its newest is damaged; a group does not.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/support/recovery.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

TEST_CASE(
    "Recover: a device that is alone and whose newest checkpoint has a flipped byte goes on from the one "
    "before") {
  DeviceGroup group(saving_often(1));
  group.start_all();
  group.feed(150);
  train_to(group, 30);
  train_until_saved(group, 0, 3);
  stop_all(group, 1);
  const auto files = saved_by(group, 0);
  REQUIRE(files.size() > 2);
  const auto newest = shown_checkpoint(group, 0, files[0].path);
  const auto before = shown_checkpoint(group, 0, files[1].path);
  damage(files[0]);
  group.start_all();
  const auto newest_step = newest["step"].get<int>();
  train_to(group, newest_step + 10);
  const std::string said = group.device(0).errors();
  INFO(said);
  CHECK(contains(said, "the newest checkpoint is damaged"));
  CHECK(contains(said, "going_on_from=" + files[1].path));
  CHECK(contains(said, "rounds_again=" + std::to_string(newest_step - before["step"].get<int>())));
  CHECK(
      contains(said, "rows_again=" + std::to_string(newest["rows"].get<int>() - before["rows"].get<int>())));
  stop_all(group, 1);
  check_ledger(group);
  group.start_all();  // once only
  train_to(group, newest_step + 15);
  CHECK_FALSE(contains(group.device(0).errors(), "trained again"));
}

TEST_CASE("Recover: a device that was killed beside it goes on as well, when its last session is silent") {
  DeviceGroup group(saving_often(1));
  group.start_all();
  group.feed(150);
  train_to(group, 20);
  train_until_saved(group, 0, 2);
  group.stop_feeding();
  REQUIRE(group.idle(30s));
  group.device(0).send_signal(SIGKILL);
  REQUIRE(group.device(0).wait(10s));
  const auto files = saved_by(group, 0);
  REQUIRE(files.size() > 1);
  damage(files[0]);
  group.start_all();
  group.feed(150);
  train_to(group, static_cast<int>(files[0].stamp.step) + 5);
  CHECK(contains(group.device(0).errors(), "going_on_from=" + files[1].path));
}

TEST_CASE("Recover: a group whose newest checkpoints are all damaged does not go back by itself") {
  DeviceGroup group(saving_often(2));
  group.start_all();
  group.feed(150);
  train_to(group, 20);
  for (int device = 0; device < 2; ++device) train_until_saved(group, device, 2);
  stop_all(group, 2);
  for (int device = 0; device < 2; ++device) {
    REQUIRE(saved_by(group, device).size() > 1);
    damage(saved_by(group, device)[0]);
  }
  group.start_all();
  for (int device = 0; device < 2; ++device) {
    const auto ended = group.device(device).wait(30s);
    INFO(group.story());
    REQUIRE(ended);
    CHECK(ended->code == 78);
    CHECK(contains(group.device(device).errors(), "is on none of device-0, device-1"));
  }
}
