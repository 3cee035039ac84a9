// Devices that come, go, freeze and die while the others train, on a real Apache Kafka: training continues,
// no row is lost, and none is trained twice in the surviving history.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/effort.h"
#include "tests/support/kill_harness.h"
#include "tests/support/step_watch.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

bool in_group_of(KillGroup& group, const std::vector<int>& devices) {
  return std::ranges::all_of(devices, [&](int device) {
    return group.status(device).value("world", std::size_t{0}) == devices.size();
  });
}

/// These devices are in one view, and each has trained since.
void require_training(KillGroup& group, const std::vector<int>& devices) {
  const bool formed = wait_until([&] { return in_group_of(group, devices); }, 20s);
  INFO(group.story());
  REQUIRE(formed);
  std::vector<std::int64_t> before;
  for (const int device : devices) before.push_back(group.group_rows(device));
  const bool moved = wait_until(
      [&] {
        group.produce(5);
        for (std::size_t i = 0; i < devices.size(); ++i)
          if (group.group_rows(devices[i]) <= before[i]) return false;
        return true;
      },
      20s);
  INFO(group.story());
  REQUIRE(moved);
}

std::string state_of(KillGroup& group, int device) {
  return group.status(device).value("state", "");
}

/// Kills one device after another, for good, half of them in the middle of a message, down to two.
void kill_one_after_another(const KillOptions& options, const std::string& figure) {
  const auto seed = seed_or(1);
  CAPTURE(seed);
  Rng rng = Rng::derive(seed, "survivors");
  std::vector<Duration> gaps;
  int inside = 0;
  const auto groups = number_or("KILL_GROUPS", static_cast<std::uint64_t>(repetitions(1, 50)));
  for (std::uint64_t i = 0; i < groups; ++i) {
    KillGroup group(options);
    std::vector<int> alive{0, 1, 2, 3, 4, 5};
    group.start_all();
    group.require_formed(30s);
    while (alive.size() > 2) {
      group.produce(1500);
      group.require_progress(30s);
      const int victim = alive[rng.below(alive.size())];
      const Moment moment = rng.below(2) == 0 ? Moment::payload : Moment::any;
      REQUIRE(group.wait_for(victim, moment, rng, 20s));
      std::erase(alive, victim);
      StepWatch watch(group, alive);
      group.kill(victim);
      watch.until_stepped(2, 60s);
      gaps.push_back(watch.longest());
      for (const int device : alive) CHECK(group.process(device).running());
    }
    inside += group.kills_inside_payload();
  }
  report_gaps(figure, gaps);
  report_figure((figure + ": inside payload bytes").c_str(), inside, "kills");
}

}  // namespace

TEST_CASE("Elastic: devices die for good, join, leave, freeze and return, and training continues") {
  KillGroup group({.devices = 4,
                   .rows_per_device = 4000,
                   .bad_every = 100,
                   .settings = {"job.devices={ min = 2, wanted = 3, max = 4 }"}});
  for (const int device : {0, 1, 2}) group.start(device);
  require_training(group, {0, 1, 2});

  group.kill(2);
  require_training(group, {0, 1});
  for (const int device : {0, 1}) {
    CHECK(group.process(device).running());
    CHECK(group.status(device).value("view_ended", "").find("device-2") != std::string::npos);
    CHECK(group.status(device).value("view_gap_s", 0.0) > 0);
  }

  group.start(3);  // a newcomer with a partition of its own
  require_training(group, {0, 1, 3});
  group.start(2);  // returns with an older state
  require_training(group, {0, 1, 2, 3});

  group.process(1).send_signal(SIGTERM);
  const auto left = group.process(1).wait(10s);
  REQUIRE(left);
  CHECK(left->code == 0);
  require_training(group, {0, 2, 3});

  group.stop(0);  // SIGSTOP: the others go on without it
  require_training(group, {2, 3});
  group.resume(0);
  require_training(group, {0, 2, 3});

  group.start(1);
  require_training(group, {0, 1, 2, 3});
  group.produce_all();
  group.require_all_trained(20s);
  group.check_exact();
}

TEST_CASE("Elastic: below min the group pauses with its state on disk, and goes on when enough are back") {
  KillGroup group({.devices = 3, .rows_per_device = 1000, .bad_every = 100, .settings = {"job.devices=2-3"}});
  group.start_all();
  require_training(group, {0, 1, 2});
  group.kill(1);
  group.kill(2);
  const bool paused = wait_until([&] { return state_of(group, 0) == "paused"; }, 20s);
  INFO(group.story());
  REQUIRE(paused);
  const std::string phrase = group.status(0).value("phrase", "");
  CHECK(phrase.starts_with("paused: waiting for "));
  CHECK(phrase.ends_with("to have at least 2 devices"));
  const auto step = group.status(0).value("steps", std::uint64_t{0});
  CHECK(wait_until([&] { return group.newest_saved() >= step; }, 10s));
  group.start(1);
  require_training(group, {0, 1});
  group.start(2);
  require_training(group, {0, 1, 2});
  group.produce_all();
  group.require_all_trained(20s);
  group.check_exact();
}

TEST_CASE("Elastic: a fixed group that may shrink goes on without a dead device, and takes it back") {
  KillGroup group(
      {.devices = 3, .rows_per_device = 1000, .bad_every = 100, .settings = {"sync.on_peer_loss=shrink"}});
  group.start_all();
  require_training(group, {0, 1, 2});
  group.kill(0);
  require_training(group, {1, 2});
  group.start(0);
  require_training(group, {0, 1, 2});
  group.produce_all();
  group.require_all_trained(20s);
  group.check_exact();
}

TEST_CASE("Elastic: a device copies a large state while the others train, and joins with it") {
  KillGroup group({.devices = 3,
                   .rows_per_device = 4000,
                   .bad_every = 0,
                   .counters = 500'000,
                   .settings = {"job.devices={ min = 2, wanted = 2, max = 3 }"}});
  for (const int device : {0, 1}) group.start(device);
  require_training(group, {0, 1});
  group.start(2);
  REQUIRE(wait_until([&] { return state_of(group, 2) == "joining"; }, 20s));
  require_training(group, {0, 1, 2});
  const std::string story = group.story();
  INFO(story);
  CHECK(story.find("the state of the group was copied") != std::string::npos);
  CHECK(story.find("state adopted") == std::string::npos);
  group.produce_all();
  group.require_all_trained(20s);
  group.check_exact();
}

TEST_CASE("Elastic: kill -9 of one device after another, and how long the survivors pause") {
  kill_one_after_another({.devices = 6,
                          .rows_per_device = 8000,
                          .bad_every = 0,
                          .counters = repetitions(100'000, 2'000'000),
                          .settings = {"job.devices=2-6"}},
                         "kill -9 for good");
}

TEST_CASE("Elastic: kill -9 over slow links, and how long the survivors pause") {
  kill_one_after_another({.devices = 6,
                          .rows_per_device = 8000,
                          .bad_every = 0,
                          .counters = 200'000,
                          .bits_per_second = 60e6,
                          .settings = {"job.devices=2-6"}},
                         "kill -9 for good, 60 Mbit/s");
}
