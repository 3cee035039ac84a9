// Devices that come, go, freeze and die while the others train, on a real Apache Kafka: training continues,
// no row is lost, and none is trained twice in the surviving history.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/effort.h"
#include "tests/support/kill_harness.h"
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

/// Time until each of them has applied two more rounds: after a death the view can apply one at most.
Duration gap_of(KillGroup& group, const std::vector<int>& devices, const std::vector<std::uint64_t>& before,
                TimePoint since) {
  const auto passed = [&] {
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (group.page(devices[i]).applied < before[i] + 2) return false;
    return true;
  };
  const RealClock clock;
  for (const TimePoint end = since + 60s; !passed() && clock.now() < end;) std::this_thread::sleep_for(1ms);
  INFO(group.story());
  REQUIRE(passed());
  return clock.now() - since;
}

std::string state_of(KillGroup& group, int device) {
  return group.status(device).value("state", "");
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
  const auto seed = seed_or(1);
  CAPTURE(seed);
  Rng rng = Rng::derive(seed, "survivors");
  std::vector<Duration> gaps;
  const auto groups = number_or("KILL_GROUPS", static_cast<std::uint64_t>(repetitions(1, 50)));
  for (std::uint64_t i = 0; i < groups; ++i) {
    KillGroup group({.devices = 6,
                     .rows_per_device = 8000,
                     .bad_every = 0,
                     .counters = repetitions(100'000, 2'000'000),
                     .settings = {"job.devices=2-6"}});
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
      std::vector<std::uint64_t> before;
      for (const int device : alive) before.push_back(group.page(device).applied);
      const TimePoint since = RealClock().now();
      group.kill(victim);
      gaps.push_back(gap_of(group, alive, before, since));
      for (const int device : alive) CHECK(group.process(device).running());
    }
    report_figure("kills inside payload bytes", group.kills_inside_payload(), "kills");
  }
  report_figure("kills that nobody returns from", static_cast<double>(gaps.size()), "kills");
  report_figure("gap of the survivors, p50", to_seconds(percentile(gaps, 0.5)), "s");
  report_figure("gap of the survivors, p95", to_seconds(percentile(gaps, 0.95)), "s");
  report_figure("gap of the survivors, max", to_seconds(percentile(gaps, 1)), "s");
}
