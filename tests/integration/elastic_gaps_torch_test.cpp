// How long the others pause when a device joins, leaves, or loses its link, and what is lost when one leaves.
// Quick runs show that it works; figures come from RIVULET_FULL=1 on an idle machine.
#include <doctest/doctest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/device_group.h"
#include "tests/support/effort.h"
#include "tests/support/kill_harness.h"
#include "tests/support/step_watch.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

std::vector<int> all_but(int device, int devices) {
  std::vector<int> others;
  for (int i = 0; i < devices; ++i)
    if (i != device) others.push_back(i);
  return others;
}

bool is_world(KillGroup& group, const std::vector<int>& devices, std::size_t size) {
  return std::ranges::all_of(
      devices, [&](int device) { return group.status(device).value("world", std::size_t{0}) == size; });
}

/// Value of a series in a page of metrics; 0 if missing.
double number_of(const std::string& page, const std::string& series) {
  const auto found = page.find("\n" + series + " ");
  return found == std::string::npos ? 0 : std::stod(page.substr(found + series.size() + 2));
}

/// The exit code must be 0. Returns the time until the exit.
Duration leave(Process& process, const std::function<void()>& look,
               const std::function<std::string()>& story) {
  const RealClock clock;
  const TimePoint asked = clock.now();
  process.send_signal(SIGTERM);
  while (process.running() && clock.now() - asked < 60s) {
    std::this_thread::sleep_for(1ms);
    look();
  }
  const Duration took = clock.now() - asked;
  const auto ended = process.wait(1s);
  INFO(story());
  REQUIRE(ended);
  CHECK(ended->code == 0);
  return took;
}

}  // namespace

TEST_CASE("Gaps: one of eight leaves, and joins again") {
  constexpr int devices = 8;
  const int times = repetitions(2, 50);
  KillGroup group({.devices = devices,
                   .rows_per_device = 2000 + 500 * times,
                   .bad_every = 0,
                   .counters = 250'000,
                   .batch_max = 1,
                   .settings = {"job.devices=2-8"}});
  for (int i = 0; i < devices; ++i) group.page(i).compute_ms = 20;
  group.start_all();
  group.require_formed(60s);
  Rng rng = Rng::derive(seed_or(1), "leavers");
  std::vector<Duration> left;
  std::vector<Duration> joined;
  std::vector<Duration> exits;
  for (int k = 0; k < times; ++k) {
    group.produce(500);
    const auto device = static_cast<int>(rng.below(devices));
    const auto others = all_but(device, devices);
    StepWatch leaving(group, others);
    exits.push_back(leave(group.process(device), [&] { leaving.look(); }, [&] { return group.story(); }));
    leaving.until_stepped(2, 30s);
    left.push_back(leaving.longest());
    StepWatch joining(group, others);
    group.start(device);
    joining.until([&] { return group.page(device).applied > 0; }, 30s);
    joining.until_stepped(2, 30s);
    joined.push_back(joining.longest());
    REQUIRE(wait_until([&] { return is_world(group, others, devices); }, 10s));
  }
  report_gaps("one of 8 leaves, 1 MB", left);
  report_gaps("one of 8 joins, 1 MB", joined);
  report_figure("exit after SIGTERM, max", to_seconds(percentile(exits, 1)), "s");
}

/// Rows per second that the group trains while `goes_on`.
double rate_of(KillGroup& group, const std::function<bool()>& goes_on) {
  const RealClock clock;
  const TimePoint since = clock.now();
  const auto before = group.group_rows(0);
  while (goes_on() && clock.now() - since < 120s) std::this_thread::sleep_for(5ms);
  return static_cast<double>(group.group_rows(0) - before) / to_seconds(clock.now() - since);
}

TEST_CASE("Gaps: a device copies a large state over a slow link, and joins") {
  constexpr int joiner = 3;
  const int times = repetitions(1, 10);
  const int counters = repetitions(500'000, 7'500'000);  // 4 bytes each
  KillGroup group(
      {.devices = 4,
       .rows_per_device = 4000 * times,
       .bad_every = 0,
       .counters = counters,
       .batch_max = 1,
       .bits_per_second = 60e6,
       .settings = {"job.devices={ min = 2, wanted = 3, max = 4 }", "compression.policy=fixed",
                    "compression.compressor=topk", "compression.keep=0.0005", "sync.policy=every"}});
  const std::vector<int> others = all_but(joiner, 4);
  for (const int device : others) group.page(device).compute_ms = 20;
  for (const int device : others) group.start(device);
  REQUIRE(wait_until([&] { return is_world(group, others, 3); }, 60s));
  std::vector<Duration> gaps;
  std::vector<Duration> first_steps;
  std::vector<double> ratios;
  for (int k = 0; k < times; ++k) {
    group.produce(4000);
    const RealClock clock;
    const TimePoint calm_until = clock.now() + 5s;
    const double alone = rate_of(group, [&] { return clock.now() < calm_until; });
    group.start(joiner);
    REQUIRE(wait_until(
        [&] { return group.status(joiner).value("phrase", "").find("copying") != std::string::npos; }, 30s));
    const TimePoint asked = clock.now();
    const double copying =
        rate_of(group, [&] { return group.status(joiner).value("state", "") == "joining"; });
    StepWatch watch(group, others);
    watch.until([&] { return group.page(joiner).applied > 0; }, 120s);
    first_steps.push_back(clock.now() - asked);
    watch.until_stepped(2, 60s);
    gaps.push_back(watch.longest());
    ratios.push_back(copying / alone);
    INFO(group.story());
    CHECK(group.story().find("state adopted") == std::string::npos);
    leave(group.process(joiner), [] {}, [&] { return group.story(); });
    REQUIRE(wait_until([&] { return is_world(group, others, 3); }, 60s));
  }
  report_gaps("a device with 30 MB joins over 60 Mbit/s", gaps);
  std::ranges::sort(ratios);
  report_figure("rows/s of the others during the copy, p50", ratios[ratios.size() / 2], "of before");
  report_figure("rows/s of the others during the copy, min", ratios.front(), "of before");
  report_figure("first step of the joining device, p50", to_seconds(percentile(first_steps, 0.5)), "s");
  report_figure("first step of the joining device, max", to_seconds(percentile(first_steps, 1)), "s");
}

TEST_CASE("Gaps: the plug of a device is pulled") {
  constexpr int devices = 4;
  const int times = repetitions(1, 30);
  KillGroup group({.devices = devices,
                   .rows_per_device = 2000 + 1500 * times,
                   .bad_every = 0,
                   .batch_max = 1,
                   .bits_per_second = 60e6,
                   .settings = {"job.devices=2-4"}});
  for (int i = 0; i < devices; ++i) {
    group.page(i).compute_ms = 20;
    group.page(i).warm = 1;  // each device is pulled again and again
  }
  group.start_all();
  group.require_formed(60s);
  Rng rng = Rng::derive(seed_or(1), "plugs");
  std::vector<Duration> gaps;
  for (int k = 0; k < times; ++k) {
    group.produce(1500);
    const auto device = static_cast<int>(rng.below(devices));
    const auto others = all_but(device, devices);
    StepWatch watch(group, others);
    watch.until_stepped(5, 30s);
    StepWatch pulled(group, others);
    group.cut_off(device);
    pulled.until([&] { return is_world(group, others, devices - 1); }, 30s);
    pulled.until_stepped(2, 30s);
    gaps.push_back(pulled.longest());
    group.plug_in(device);
    group.require_formed(60s);
  }
  report_gaps("plug pulled, sync.deadline 2 s", gaps);
}

TEST_CASE("Gaps: a device that leaves sends its residual first") {
  constexpr int devices = 3;
  DeviceGroup group(
      {.devices = devices,
       .on_peer_loss = "reform",
       .arguments = {"--set", "compression.policy=fixed", "--set", "compression.compressor=topk", "--set",
                     "compression.keep=0.1", "--set", "sync.policy=every"}});
  group.feed(200);
  const std::vector<std::string> sizes{"--devices", "2-3"};
  for (int i = 0; i < devices; ++i) group.start(i, sizes);
  REQUIRE_MESSAGE(group.formed(60s), group.story());
  std::vector<Duration> exits;
  double lost = 0;
  const std::string words = "left before all of its residual was sent";
  for (int k = 0; k < repetitions(2, 30); ++k) {
    const int device = k % devices;
    REQUIRE_MESSAGE(group.trained(20, 60s), group.story());
    CHECK(number_of(group.metrics(device), "rivulet_residual_norm") > 0);  // there is something to lose
    exits.push_back(leave(group.device(device), [] {}, [&] { return group.story(); }));
    lost += contains(group.device(device).errors(), words) ? 1 : 0;
    const int other = (device + 1) % devices;
    const bool resumed =
        wait_until([&] { return group.status(other).value("world", 0) == devices - 1; }, 20s);
    REQUIRE_MESSAGE(resumed, group.story());
    group.start(device, sizes);
    REQUIRE_MESSAGE(group.formed(60s), group.story());
  }
  CHECK(lost == 0);
  report_figure("SIGTERM: devices that left some of their residual", lost, "devices");
  report_figure("SIGTERM: exit, p50", to_seconds(percentile(exits, 0.5)), "s");
  report_figure("SIGTERM: exit, max", to_seconds(percentile(exits, 1)), "s");
}
