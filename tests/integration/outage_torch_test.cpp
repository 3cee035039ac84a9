// The broker is unreachable: killed and restarted, alone or together with a device. No row is lost, no device
// ends or spins, no view forms without the log, and the group resumes by itself. Numbered rows from a real
// Apache Kafka; the parameters are the count.
#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/clock.h"
#include "tests/support/effort.h"
#include "tests/support/kill_harness.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr int members = 3;
constexpr double cpu_share_max = 0.2;  // of one core, while idle

/// Checks the CPU use of each waiting device.
class CpuWatch {
 public:
  explicit CpuWatch(KillGroup& group) : group_(group), began_(clock_.now()), before_(read()) {}
  void check() {
    const double seconds = to_seconds(clock_.now() - began_);
    const auto now = read();
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (before_[i] < 0 || now[i] < 0) continue;
      const double share = (now[i] - before_[i]) / seconds;
      report_figure("CPU of a device while the broker is away", share * 100, "%");
      CHECK(share < cpu_share_max);
    }
  }

 private:
  std::array<double, members> read() {
    std::array<double, members> seconds{};
    for (int i = 0; i < members; ++i) {
      const auto stats = group_.process(i).running() ? group_.process(i).stats() : std::nullopt;
      seconds[static_cast<std::size_t>(i)] = stats ? stats->cpu_seconds : -1;
    }
    return seconds;
  }
  KillGroup& group_;
  RealClock clock_;
  TimePoint began_;
  std::array<double, members> before_;
};

/// A group that has trained 500 rows of every partition; more are on their way.
struct BusyGroup : KillGroup {
  BusyGroup() : KillGroup({.devices = members, .rows_per_device = 1500}) {
    start_all();
    produce(500);
    require_caught_up(60s);
    produce(300);
  }
};

void check_untouched_view(KillGroup& group) {
  group.check_alive_but(-1);
  for (int i = 0; i < members; ++i) {
    CHECK(group.status(i).value("world", 0) == members);
    CHECK(group.status(i).value("view", 0) == 1);
  }
}

/// Without the broker: no device ends or spins, and the view needs no log.
void wait_quietly(KillGroup& group, Duration outage) {
  std::this_thread::sleep_for(2s);
  CpuWatch cpu(group);
  std::this_thread::sleep_for(outage);
  cpu.check();
  check_untouched_view(group);
}

/// Without the broker every device reports it by name on its page, and has no lag.
void check_missed(KillGroup& group) {
  for (int i = 0; i < members; ++i) {
    const auto page = group.status(i);
    CHECK_MESSAGE(contains(page.value("source_trouble", ""), "no broker of 127.0.0.1:"), page.dump());
    CHECK(page["lag_records"].is_null());
  }
}

/// The broker is back: rows arrive again, and the lag is known.
void check_found(KillGroup& group) {
  for (int i = 0; i < members; ++i)
    CHECK(wait_until(
        [&] {
          const auto page = group.status(i);
          return page["source_trouble"].is_null() && page["lag_records"].is_number();
        },
        15s));
}

void finish(KillGroup& group) {
  group.produce_all();
  group.require_all_trained(90s);
  for (int i = 0; i < members; ++i) {
    const auto state = [&] { return group.status(i)["partitions"][0].value("state", ""); };
    CHECK(wait_until([&] { return state() == "reading"; },
                     5s));  // the page may be slightly older than the end of the pause
  }
}

}  // namespace

TEST_CASE(
    "Outage: the broker is killed and started again, then it falls silent, and every row is counted once") {
  BusyGroup group;
  group.kafka().kill();
  wait_quietly(group, std::chrono::seconds(repetitions(8, 20)));
  check_missed(group);
  const Status again = group.kafka().restart();
  REQUIRE_MESSAGE(again, again.error().message);
  group.produce(300);
  group.require_caught_up(90s);
  check_found(group);
  // The suspended broker keeps its connections, longer than all timeouts of a device: the watchdog's, and
  // those of the client.
  group.kafka().suspend();
  wait_quietly(group, std::chrono::seconds(repetitions(4, 70)));
  group.kafka().resume();
  finish(group);
  check_untouched_view(group);
  group.check_exact();
}

TEST_CASE(
    "Outage: broker and device die together: nobody trains without the log, then all goes on by itself") {
  BusyGroup group;
  group.kafka().kill();
  group.kill(1);
  const auto forms = [&](int i) { return group.status(i).value("state", "") == "forming"; };
  const bool noticed = wait_until([&] { return forms(0) && forms(2); }, 20s);
  INFO(group.story());
  REQUIRE(noticed);
  const std::array before{group.group_rows(0), group.group_rows(2)};
  CpuWatch cpu(group);
  const RealClock clock;
  const auto end = clock.now() + std::chrono::seconds(repetitions(8, 45));
  // As a service manager does: a device without a broker for 10 s ends, possibly just before the broker
  // returns.
  const auto keep_running = [&] {
    if (!group.process(1).running()) group.start(1);
  };
  group.start(1);
  while (clock.now() < end) {
    group.check_alive_but(1);
    CHECK(group.status(0).value("world", -1) == 0);
    CHECK(group.status(2).value("world", -1) == 0);
    keep_running();
    std::this_thread::sleep_for(100ms);
  }
  cpu.check();
  CHECK(group.group_rows(0) == before[0]);
  CHECK(group.group_rows(2) == before[1]);
  const Status again = group.kafka().restart();
  REQUIRE_MESSAGE(again, again.error().message);
  const bool formed = wait_until(
      [&] {
        keep_running();
        return group.status(1).value("world", -1) == members;
      },
      60s);
  CHECK(formed);
  finish(group);
  CHECK(group.status(0).value("view", 0) >= 2);
  group.check_exact();
}

TEST_CASE(
    "Gaps: a device whose rows were cut stays in the group without rows, or counts the gap and goes on") {
  constexpr auto good = [](int rows) { return rows * 49 / 50; };
  KillGroup group({.devices = members, .rows_per_device = 1500, .bad_every = 50});
  group.start_all();
  group.produce(500);
  group.require_caught_up(60s);
  group.process(2).send_signal(SIGTERM);
  REQUIRE(group.process(2).wait(20s));
  group.produce(200);
  group.delete_unread(2, 500, 600);
  group.start(2);
  const auto all_have = [&](int rows) {
    return group.group_rows(0) == rows && group.group_rows(1) == rows && group.group_rows(2) == rows;
  };
  const bool others = wait_until([&] { return all_have(good(3 * 500 + 2 * 200)); }, 60s);
  INFO(group.story());
  REQUIRE(others);
  const auto partition = [&] { return group.status(2)["partitions"][0]; };
  CHECK(wait_until([&] { return partition().value("state", "") == "stopped"; }, 10s));
  CHECK(partition().value("topic", "") == "rows");
  CHECK(partition().value("partition", -1) == 2);
  CHECK(partition().value("next_offset", -1) == 500);
  CHECK(partition().value("low_watermark", -1) == 600);
  CHECK(partition().value("high_watermark", -1) == 700);
  CHECK(contains(partition().value("reason", ""), "topic \"rows\", partition 2: offset 500 does not exist"));
  CHECK(contains(group.process(2).errors(), "every partition of this device is stopped"));
  group.produce(100);
  CHECK(wait_until([&] { return all_have(good(3 * 500 + 2 * 300)); }, 30s));
  CHECK(group.status(2).value("world", 0) == members);

  group.process(2).send_signal(SIGTERM);
  REQUIRE(group.process(2).wait(20s));
  group.start(2, {"source.on_gap=count"});
  finish(group);
  CHECK(partition().value("skipped", -1) == 100);
  CHECK(contains(group.process(2).errors(), "offsets deleted before they were read are skipped"));
  group.check_exact();
}
