// Checkpoints damaged while their devices were stopped: none is loaded, each is reported, and the group
// resumes from the newest whole one on any device.
#include <doctest/doctest.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/kill_harness.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> checkpoints_of(const KillGroup& group, int device) {
  std::vector<fs::path> files;
  for (const auto& file : fs::directory_iterator(group.directory(device) + "/checkpoints"))
    if (file.path().extension() == ".ckpt") files.push_back(file.path());
  return files;
}

void tear(const fs::path& file, double share) {
  fs::resize_file(file, static_cast<std::uintmax_t>(share * static_cast<double>(fs::file_size(file))));
}

/// In the middle of the parameters.
void flip_a_bit(const fs::path& file) {
  flip(file, fs::file_size(file) / 2);
}

/// Long enough for several checkpoints.
void train_some(KillGroup& group) {
  for (int i = 0; i < 12; ++i) {
    group.produce(40);
    std::this_thread::sleep_for(250ms);
  }
  group.require_caught_up(20s);
}

/// Returns a device with a checkpoint of this step.
int who_has(const KillGroup& group, std::uint64_t step) {
  for (int i = 0; i < group.devices(); ++i)
    for (const auto& file : checkpoints_of(group, i))
      if (contains(file.filename().string(), "." + std::to_string(step) + ".")) return i;
  return -1;
}

/// For a device whose files were all damaged.
void check_helped_by_another(const std::string& said, const std::vector<fs::path>& files) {
  INFO(said);
  REQUIRE_FALSE(files.empty());
  for (const auto& file : files) CHECK(contains(said, file.filename().string()));
  CHECK_FALSE(contains(said, "checkpoint loaded"));
  CHECK(contains(said, "state adopted"));
}

}  // namespace

TEST_CASE(
    "Torn checkpoints: a device without a whole one gets the state of another one, even if all were killed") {
  KillGroup group({.devices = 3, .rows_per_device = 1200});
  group.start_all();
  group.require_formed(30s);
  train_some(group);
  group.kill(1);
  const auto torn = checkpoints_of(group, 1);
  for (std::size_t k = 0; k < torn.size(); ++k) tear(torn[k], 0.3 * static_cast<double>(k));
  group.start(1);
  group.produce(60);
  static_cast<void>(group.wait_until_back(1, 30s));
  check_helped_by_another(group.process(1).errors(), torn);
  group.check_alive_but(-1);
  for (const auto& file : torn) fs::remove(file);  // a log has no more than five lines of a kind per second

  train_some(group);
  group.kill_all();
  const auto newest = group.newest_saved();
  const int keeper = who_has(group, newest);
  REQUIRE(keeper >= 0);
  std::array<std::vector<fs::path>, 3> files;
  for (int i = 0; i < 3; ++i) files.at(static_cast<std::size_t>(i)) = checkpoints_of(group, i);
  const auto one = static_cast<std::size_t>(keeper + 1) % 3;
  const auto two = static_cast<std::size_t>(keeper + 2) % 3;
  for (const auto& file : files.at(one)) tear(file, 0.9);
  for (const auto& file : files.at(two)) flip_a_bit(file);
  group.start_all();
  group.require_formed(30s);
  const auto view = group.status(0).value("view", std::uint64_t{0});
  CHECK(contains(group.process(keeper).errors(), "checkpoint loaded"));
  for (const auto i : {one, two})
    check_helped_by_another(group.process(static_cast<int>(i)).errors(), files.at(i));
  group.produce_all();
  group.require_all_trained(20s);
  auto history = group.check_exact();
  CHECK(history.begins[view] == newest);
}
