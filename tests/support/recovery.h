#pragma once
#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "tests/support/device_group.h"
#include "tests/support/places.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

/// Groups that save often, and their checkpoint folders.
namespace rivulet::testing {

inline DeviceGroupOptions saving_often(int devices) {
  return {.devices = devices,
          .on_peer_loss = "reform",
          .arguments = {"--set", "model.name=linear", "--set", "batch.tick=40ms", "--set",
                        "checkpoint.every.rounds=5", "--set", "checkpoint.keep=10"}};
}

/// `rivulet WORDS` for the folder of a device.
inline RunOutput on_folder(const DeviceGroup& group, int device, std::vector<std::string> words) {
  words.insert(words.end(), {"--config", source_path("examples/mnist/device.toml"), "--set",
                             "model.name=linear", "--data-dir", group.directory(device)});
  return run_rivulet(words, std::chrono::seconds(60));
}

inline nlohmann::json shown_checkpoint(const DeviceGroup& group, int device, const std::string& file) {
  const auto said = on_folder(group, device, {"checkpoint", "show", file, "--json"});
  auto json = nlohmann::json::parse(said.output, nullptr, false);
  REQUIRE_MESSAGE(json.is_object(), said.errors);
  return json;
}

/// Newest first.
inline std::vector<runtime::CheckpointEntry> saved_by(const DeviceGroup& group, int device) {
  std::vector<std::string> problems;
  return runtime::CheckpointFolder(runtime::checkpoints_in(group.directory(device))).list(problems);
}

/// Corrupts the file.
inline void damage(const runtime::CheckpointEntry& entry) {
  flip(entry.path, entry.bytes / 2);
}

inline void train_to(DeviceGroup& group, int steps) {
  REQUIRE_MESSAGE(group.formed(std::chrono::seconds(60)), group.story());
  REQUIRE_MESSAGE(group.trained(steps, std::chrono::seconds(60)), group.story());
}

/// Trains until a minimum of `states` of this device are on disk, since saving is asynchronous.
inline void train_until_saved(DeviceGroup& group, int device, std::size_t states) {
  const auto saved = [&] { return saved_by(group, device).size() >= states; };
  REQUIRE_MESSAGE(wait_until(saved, std::chrono::seconds(60)), group.story());
}

inline void stop_all(DeviceGroup& group, int devices) {
  for (int i = 0; i < devices; ++i) group.device(i).send_signal(SIGTERM);
  for (int i = 0; i < devices; ++i) {
    const auto ended = group.device(i).wait(std::chrono::seconds(30));
    INFO(group.story());
    REQUIRE(ended);
    CHECK(ended->code == 0);
  }
}

inline void check_ledger(const DeviceGroup& group) {
  const auto said = on_folder(group, 0, {"ledger", "verify", "--brokers", group.brokers()});
  INFO(said.output, said.errors);
  CHECK(said.status.code == 0);
}

}  // namespace rivulet::testing
