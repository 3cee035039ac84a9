// Devices that are killed at chosen moments and restarted: the others stay, no row is lost, and none is
// trained twice in the surviving history. Numbered rows from a real Apache Kafka; the parameters are the
// count.
#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/effort.h"
#include "tests/support/kill_harness.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

void sleep_up_to(Duration longest, Rng& rng) {
  const auto ms =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(longest).count());
  std::this_thread::sleep_for(std::chrono::milliseconds(rng.below(ms)));
}

int other_than(int device, int devices, Rng& rng) {
  return (device + 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(devices - 1)))) % devices;
}

}  // namespace

TEST_CASE("Kill: single devices at chosen moments, on slow links") {
  const auto seed = seed_or(1);
  CAPTURE(seed);
  Rng rng = Rng::derive(seed, "single");
  const int kills = repetitions(3, 60);
  const int while_another_comes_back = repetitions(1, 10);
  const int tries = repetitions(2, 14);  // it may be back before the second kill
  KillGroup group({.devices = 4,
                   .rows_per_device = repetitions(2'500, 50'000),
                   .bad_every = 500,
                   .counters = 200'000,
                   .batch_max = repetitions(64, 256),
                   .buffer_rows = repetitions(128, 512),
                   .bits_per_second = 60e6});
  group.start_all();
  group.require_formed(30s);
  group.produce_all();
  std::vector<Duration> back;
  int met_away = 0;
  for (int k = 0; k < kills; ++k) {
    group.require_progress(30s);
    const int victim = static_cast<int>(rng.below(4));
    // Most kills should be inside payload bytes, the rest elsewhere.
    const Moment moment = k % 3 != 2   ? Moment::payload
                          : k % 2 == 0 ? Moment::checkpoint
                          : k % 4 == 1 ? Moment::compute
                                       : Moment::idle;
    CAPTURE(k);
    CAPTURE(victim);
    sleep_up_to(500ms, rng);
    const bool met = group.kill_at(victim, moment, rng, 20s);
    INFO(group.story());
    REQUIRE(met);
    group.check_alive_but(victim);
    sleep_up_to(500ms, rng);
    group.start(victim);
    if (k * tries / kills != (k + 1) * tries / kills) {
      sleep_up_to(1000ms, rng);
      const int second = other_than(victim, 4, rng);
      group.kill(second);
      met_away += group.page(victim).applied == 0 ? 1 : 0;
      group.check_alive_but(second);
      group.start(second);
      static_cast<void>(group.wait_until_back(second, 30s));
    }
    back.push_back(group.wait_until_back(victim, 30s));
  }
  group.require_all_trained(20s);
  const auto history = group.check_exact();
  report_figure("kills of single devices", kills + tries, "kills");
  report_figure("kills while another comes back", met_away, "kills");
  report_figure("kills inside payload bytes", group.kills_inside_payload(), "kills");
  report_figure("kills inside a checkpoint's file", group.kills_inside_checkpoint(), "kills");
  report_figure("rows trained", static_cast<double>(history.rows), "rows");
  report_figure("applied round after the killed process is up, p50", to_seconds(percentile(back, 0.5)), "s");
  report_figure("applied round after the killed process is up, p95", to_seconds(percentile(back, 0.95)), "s");
  CHECK(2 * group.kills_inside_payload() >= kills);
  CHECK(met_away >= while_another_comes_back);
}

TEST_CASE("Kill: all devices at once, and they go on from what the group has saved") {
  const auto seed = seed_or(1);
  CAPTURE(seed);
  Rng rng = Rng::derive(seed, "all at once");
  const int kills = repetitions(1, 20);
  KillGroup group({.devices = 3, .rows_per_device = 800 * (kills + 1), .bad_every = 300});
  group.start_all();
  std::map<std::uint64_t, std::uint64_t> saved;  // view -> the step at which it must begin
  for (int k = 0; k < kills; ++k) {
    group.require_formed(30s);
    // Every other time while a state is being written: the group resumes from the rounds before it.
    const bool at_checkpoint = k % 2 == 0;
    bool met = false;
    for (int i = 0; i < 8; ++i) {
      group.produce(at_checkpoint ? 50 : 100);
      sleep_up_to(at_checkpoint ? 250ms : 500ms, rng);
    }
    for (int i = 0; i < 40 && at_checkpoint && !met; ++i) {
      group.produce(10);
      met = group.wait_for(0, Moment::checkpoint, rng, 250ms);
    }
    INFO(group.story());
    CHECK(met == at_checkpoint);
    group.kill_all();
    // A disk may be lost while checkpoint.quorum of them remain.
    if (k % 4 == 0) group.wipe(static_cast<int>(rng.below(3)));
    const auto newest = group.newest_saved();
    group.start_all();
    group.require_formed(30s);
    saved[group.status(0).value("view", std::uint64_t{0})] = newest;
  }
  group.produce_all();
  group.require_all_trained(20s);
  auto history = group.check_exact();
  for (const auto& [view, step] : saved) CHECK(history.begins[view] == step);
  report_figure("kills of all devices", kills, "kills");
  report_figure("rows trained again per kill of all", static_cast<double>(history.rows_again) / kills,
                "rows");
}

TEST_CASE(
    "Kill: all devices at once, while copies of rows pass between them and too fast streams are truncated") {
  const auto seed = seed_or(1);
  CAPTURE(seed);
  Rng rng = Rng::derive(seed, "copies and truncation");
  const int kills = repetitions(2, 50);
  const int rows = repetitions(12'000, 1'000'000) / 3 + 1;
  KillGroup group(
      {.devices = 3,
       .rows_per_device = rows,
       .bad_every = repetitions(50, 20'000),  // the ledger keeps a bounded number of exact positions
       .batch_max = repetitions(32, 256),
       .buffer_rows = 4096,
       .copies = true,
       .truncated = true,
       .settings = {"batch.policy=stream"}});
  group.start_all();
  std::uint64_t copies = 0;
  for (int k = 0; k < kills; ++k) {
    group.require_formed(30s);
    for (int i = 0; i < 10; ++i) {
      group.produce(rows / (kills + 1) / 10);
      sleep_up_to(400ms, rng);
    }
    group.kill_all();
    for (int i = 0; i < group.devices(); ++i) copies += group.page(i).copies.exchange(0);
    group.start_all();
  }
  group.produce_all();
  group.require_formed(30s);
  group.require_all_passed(20s);
  const RunHistory history = group.check_exact();
  report_figure("kills of all devices with copies and truncation", kills, "kills");
  report_figure("rows of them", 3.0 * rows, "rows");
  report_figure("rows truncated", static_cast<double>(group.rows_truncated()), "rows");
  report_figure("copies computed on", static_cast<double>(copies), "rows");
  CHECK(copies > 0);
  CHECK(group.rows_truncated() > 0);
  CHECK(20 * history.rows > static_cast<std::uint64_t>(rows));
}
