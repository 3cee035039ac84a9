// A group of real devices rolls back to an older checkpoint on request.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/recovery.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;
using Json = nlohmann::json;

TEST_CASE(
    "Recover: a group goes back to an older checkpoint when all devices are told to, and not when one is") {
  DeviceGroup group(saving_often(2));
  group.start_all();
  group.feed(150);  // the broker keeps some thousand rows, and the devices are stopped from time to time
  train_to(group, 30);
  for (int device = 0; device < 2; ++device) train_until_saved(group, device, 4);
  const auto running = on_folder(group, 0, {"checkpoint", "restore", saved_by(group, 0).back().path});
  CHECK(running.status.code == 78);
  CHECK(contains(running.errors, "is in use by another rivulet run"));
  stop_all(group, 2);
  const auto files = saved_by(group, 0);
  REQUIRE(files.size() > 3);
  const auto& to = files[3];
  const std::string name = std::filesystem::path(to.path).filename();
  const auto restore = [&](int device) {
    return on_folder(
        group, device,
        {"checkpoint", "restore", runtime::checkpoints_in(group.directory(device)) + "/" + name, "--json"});
  };
  const auto newest = shown_checkpoint(group, 0, files[0].path);
  const auto goal = shown_checkpoint(group, 0, to.path);

  const auto one = restore(0);
  REQUIRE_MESSAGE(one.status.code == 0, one.errors);
  const auto done = Json::parse(one.output);
  CHECK(done["step"] == to.stamp.step);
  CHECK(done["aside"].size() == 3);
  CHECK(done["rounds_again"] == newest["step"].get<int>() - goal["step"].get<int>());
  CHECK(done["rows_again"] == newest["rows"].get<int>() - goal["rows"].get<int>());
  group.start_all();
  train_to(group, newest["step"].get<int>() + 5);
  CHECK(contains(group.device(0).errors(), "had=" + text_of(to.stamp) + " has=" + text_of(files[0].stamp)));
  stop_all(group, 2);

  const auto committed = saved_by(group, 0).front().stamp;
  for (int device = 0; device < 2; ++device) {
    // The first device had restored a newer state than the one to which both roll back now.
    const auto again = restore(device);
    REQUIRE_MESSAGE(again.status.code == 0, again.errors);
  }
  group.start_all();
  REQUIRE_MESSAGE(group.formed(60s), group.story());
  CHECK(contains(group.device(1).errors(), "msg=\"checkpoint loaded\" state=" + text_of(to.stamp)));
  CHECK_FALSE(contains(group.device(0).errors(), "state adopted"));
  REQUIRE_MESSAGE(group.trained(static_cast<int>(to.stamp.step) + 12, 60s), group.story());
  stop_all(group, 2);
  CHECK(saved_by(group, 0).front().stamp > committed);
  check_ledger(group);
}
