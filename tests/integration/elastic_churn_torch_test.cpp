// Groups whose devices come and go all the time: what the others still train, and whether every row counts
// exactly once. Quick runs show that it works; figures come from RIVULET_FULL=1 on an idle machine.
#include <doctest/doctest.h>

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

/// Keeps rows in every partition for this time; calls `work` a hundred times a second.
void keep_fed(
    KillGroup& group, int rows_per_second, Duration lasts, const std::function<void()>& work = [] {}) {
  const RealClock clock;
  const TimePoint end = clock.now() + lasts;
  TimePoint fed{};
  while (clock.now() < end) {
    work();
    if (clock.now() - fed > 500ms) {
      group.produce(rows_per_second / 2 + 1);
      fed = clock.now();
    }
    std::this_thread::sleep_for(10ms);
  }
}

void leave(KillGroup& group, int device) {
  group.process(device).send_signal(SIGTERM);
  const auto ended = group.process(device).wait(20s);
  INFO(group.story());
  REQUIRE(ended);
  CHECK(ended->code == 0);
}

struct Rate {
  double rows = 0;
  double device_seconds = 0;
  [[nodiscard]] double value() const { return rows / device_seconds; }
};

}  // namespace

// Windows with and without churn take turns, so that both see the same machine.
TEST_CASE("Churn: one of eight leaves or joins in every window, and the others train on") {
  constexpr int devices = 8;
  constexpr int row_ms = 200;
  const int turns = repetitions(1, 5);
  const Duration window = repetitions(2, 30) * 1s;
  const int seconds = static_cast<int>(to_seconds(window)) * (4 * turns + 1);
  KillGroup group({.devices = devices,
                   .rows_per_device = (seconds + 60) * 1000 / row_ms,
                   .bad_every = 0,
                   .batch_max = 1,
                   .settings = {"job.devices=2-8"}});
  for (int i = 0; i < devices; ++i) group.page(i).compute_ms = row_ms;
  group.start_all();
  group.require_formed(60s);
  Rng rng = Rng::derive(seed_or(1), "churn");
  Rate calm;
  Rate churn;
  const auto measure = [&](Rate& rate, int living) {
    const RealClock clock;
    const TimePoint began = clock.now();
    const auto rows = static_cast<double>(group.newest_rows());
    keep_fed(group, 1000 / row_ms, window);
    rate.rows += static_cast<double>(group.newest_rows()) - rows;
    rate.device_seconds += living * to_seconds(clock.now() - began);
  };
  for (int k = 0; k < turns; ++k) {
    measure(calm, devices);
    measure(calm, devices);
    const auto device = static_cast<int>(rng.below(devices));
    group.process(device).send_signal(SIGTERM);  // the window begins with the change
    measure(churn, devices - 1);
    REQUIRE(group.process(device).wait(10s));
    group.start(device);
    measure(churn, devices);
    group.require_formed(60s);
  }
  for (int i = 0; i < devices; ++i) group.page(i).compute_ms = 0;
  group.produce_all();
  group.require_all_trained(30s);
  group.check_exact();
  report_figure("churn: a change every", to_seconds(window), "s");
  report_figure("churn: rows per device-second, of those without", churn.value() / calm.value(), "");
  CHECK(churn.rows > 0);
}

TEST_CASE("Churn: a device that dies every three seconds costs the others little") {
  constexpr int devices = 4;
  constexpr int flapper = 3;
  constexpr int row_ms = 100;
  const int seconds = repetitions(10, 300);
  KillGroup group({.devices = devices,
                   .rows_per_device = (2 * seconds + 60) * 1000 / row_ms,
                   .bad_every = 0,
                   .batch_max = 1,
                   .settings = {"job.devices=2-4"}});
  for (int i = 0; i < devices; ++i) group.page(i).compute_ms = row_ms;
  group.start_all();
  group.require_formed(60s);
  const RealClock clock;
  const auto rate = [&](Duration lasts, const std::function<void()>& work) {
    const auto before = group.page(0).applied.load();
    const TimePoint began = clock.now();
    keep_fed(group, 1000 / row_ms, lasts, work);
    return static_cast<double>(group.page(0).applied - before) / to_seconds(clock.now() - began);
  };
  const Duration half = seconds * 500ms;
  const double before = rate(half, [] {});
  const int first_view = group.status(0).value("view", 0);
  std::vector<TimePoint> changes;
  int view = first_view;
  TimePoint started = clock.now();
  const double flapped = rate(2 * half, [&] {
    if (const int now = group.status(0).value("view", view); now != view) {
      changes.insert(changes.end(), static_cast<std::size_t>(now - view), clock.now());
      view = now;
    }
    if (clock.now() - started < 3s) return;
    group.kill(flapper);
    group.start(flapper);
    started = clock.now();
  });
  const double after = rate(half, [] {});  // it cools down
  std::size_t most = 0;                    // of any minute, from the third change on
  for (std::size_t i = 2; i < changes.size(); ++i) {
    const auto in_minute = [&](TimePoint at) { return at >= changes[i] && at < changes[i] + 60s; };
    most = std::max(most, static_cast<std::size_t>(std::ranges::count_if(changes, in_minute)));
  }
  group.kill_all();  // with the rule off, nobody waits
  for (int i = 0; i < devices; ++i) {
    group.page(i).warm = 1;
    group.page(i).compute_ms = 0;
  }
  group.start_all();
  group.produce_all();
  group.require_all_trained(30s);
  group.check_exact();
  report_figure("flapper: seconds", seconds, "s");
  report_figure("flapper: view changes", static_cast<double>(changes.size()), "changes");
  report_figure("flapper: most in a minute, from the third on", static_cast<double>(most), "changes");
  report_figure("flapper: rounds of the others, of those without", 2 * flapped / (before + after), "");
  CHECK(changes.size() <= 12);
}

TEST_CASE("Churn: under kills, joins and leaves every numbered row counts exactly once") {
  constexpr int devices = 4;
  KillGroup group({.devices = devices,
                   .rows_per_device = repetitions(2000, 260'000),
                   .bad_every = 50,
                   .batch_max = 64,
                   .buffer_rows = 512,
                   .settings = {"job.devices=2-4"}});
  for (int i = 0; i < devices; ++i) {
    group.page(i).warm = 1;
    group.page(i).compute_ms = repetitions(100, 20);
  }
  group.start_all();
  group.require_formed(60s);
  Rng rng = Rng::derive(seed_or(1), "rows");
  int kills = 0;
  int leaves = 0;
  // Rows come as fast as they are trained, so that every event meets a group that trains.
  const auto step = [&] { group.produce(repetitions(200, 2000)); };
  while (group.rows_produced() < group.rows_in_all()) {
    step();
    const auto device = static_cast<int>(rng.below(devices));
    if (rng.below(2) == 0) {
      group.kill(device);
      ++kills;
    } else {
      leave(group, device);
      ++leaves;
    }
    std::this_thread::sleep_for(1ms * static_cast<int>(rng.below(2000)));
    group.start(device);
    group.require_progress(30s);
    std::this_thread::sleep_for(1ms * static_cast<int>(rng.below(2000)));
  }
  group.require_all_trained(30s);
  const auto history = group.check_exact();
  report_figure("numbered rows: kills", kills, "kills");
  report_figure("numbered rows: leaves", leaves, "leaves");
  report_figure("numbered rows: trained once each", static_cast<double>(history.rows), "rows");
  report_figure("numbered rows: views", static_cast<double>(history.begins.size()), "views");
  CHECK(kills > 0);
  CHECK(leaves > 0);
}
