// Every published way to synchronize, and some combinations, with four real processes: they have the same
// bits, lose no row, also when one of them is killed, and a replay of one device's log computes the same
// plans.
#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "tests/support/recovery.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;
using Json = nlohmann::json;

namespace {

constexpr int devices = 4;

std::vector<std::string> sets_of(const std::vector<std::string>& settings) {
  std::vector<std::string> all{"--set", "model.name=linear", "--set", "batch.tick=40ms"};
  for (const std::string& one : settings) all.insert(all.end(), {"--set", one});
  return all;
}

/// The plans of one device, as text.
std::string replayed(const DeviceGroup& group, int device) {
  const auto replay =
      run_rivulet({"decisions", "replay", group.directory(device) + "/decisions.jsonl", "--json"}, 60s);
  INFO(replay.output, replay.errors);
  CHECK(replay.status.code == 0);
  const auto told = run_rivulet({"decisions", "explain", group.directory(device) + "/decisions.jsonl"}, 60s);
  CHECK(told.status.code == 0);
  return told.output;
}

/// Trains, kills a device on the way if `kills`, and returns the decisions.
std::string train(const std::vector<std::string>& settings, bool kills = false) {
  CAPTURE(settings[0] + " ...");
  DeviceGroup group({.devices = devices, .on_peer_loss = "reform", .arguments = sets_of(settings)});
  group.start_all();
  group.feed(400);
  train_to(group, 15);
  if (kills) {
    group.device(1).send_signal(SIGKILL);
    REQUIRE(group.device(1).wait(10s));
    group.start(1);
    REQUIRE_MESSAGE(group.trained(10, 60s), group.story());
  }
  stop_all(group, devices);
  for (int i = 1; i < devices; ++i) CHECK(group.summary(i)["digest"] == group.summary(0)["digest"]);
  check_ledger(group);
  return replayed(group, 0);
}

}  // namespace

TEST_CASE("Published: gates of ScaDLES, GraVAC and Flexible, each by four processes") {
  for (const char* policy : {"two-point", "gravac", "moo"}) {
    const std::string said = train({"sync.policy=every", std::string("compression.policy=") + policy});
    CHECK(contains(
        said, "Gate " + std::string(policy) + " decided by gains (share of elements: share of the norm)"));
    CHECK(contains(said, "summed by "));
  }
}

TEST_CASE("Published: SelSync, alone and with gates and shared positions, also when a device is killed") {
  train({"sync.policy=selsync", "sync.selsync.delta=0.2", "compression.policy=none"});
  train({"sync.policy=selsync", "sync.selsync.delta=0.2", "compression.policy=two-point",
         "sync.collective=shared_index", "sync.shared_index.root=largest"},
        true);
}

TEST_CASE("Published: PowerSGD's thin matrices, also when a device is killed") {
  CHECK(contains(
      train({"sync.policy=every", "compression.policy=fixed", "compression.compressor=low_rank"}, true),
      "Each device sent all parameters, encoded by low_rank"));
}

TEST_CASE("Published: AR-Topk by thresholds of DGC, and a collective that is learned by RedSync's") {
  train({"sync.policy=every", "compression.policy=fixed", "compression.compressor=dgc",
         "sync.collective=shared_index"});
  train({"sync.policy=every", "compression.policy=fixed", "compression.compressor=redsync",
         "sync.collective=learned"});
}
