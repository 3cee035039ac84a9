// A group whose view is lost repeatedly without crashes: the processes stay, no row is lost or counts twice,
// and no resource leaks. Kills: kill_torch_test.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/effort.h"
#include "tests/support/kill_harness.h"
#include "tests/support/strangers.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

std::vector<pid_t> pids_of(KillGroup& group) {
  std::vector<pid_t> pids;
  for (int i = 0; i < group.devices(); ++i) pids.push_back(group.process(i).pid());
  return pids;
}

}  // namespace

TEST_CASE("Re-forming: one survivor has applied the round and another has not, in both directions") {
  KillGroup group({.devices = 3, .rows_per_device = 600});
  group.start_all();
  group.require_formed(30s);
  for (const int behind : {0, 1}) {
    const int ahead = 1 - behind;
    CAPTURE(behind);
    group.produce(100);
    group.require_caught_up(30s);
    const auto lead = [&] { return group.page(ahead).applied - group.page(behind).applied; };
    const auto before = lead();
    group.page(2).hold_back = 1U << static_cast<unsigned>(behind);  // ranks are in the order of the ids
    group.produce(100);
    INFO(group.story());
    REQUIRE(wait_until([&] { return lead() == before + 1; }, 10s));
    std::this_thread::sleep_for(50ms);
    group.kill(2);
    CHECK(lead() == before + 1);  // and it was not on its way
    group.page(2).hold_back = 0;
    std::this_thread::sleep_for(200ms);
    group.check_alive_but(2);
    CHECK(lead() == before + 1);
    group.start(2);
    static_cast<void>(group.wait_until_back(2, 30s));
    CHECK(contains(group.process(behind).errors(), "state adopted"));
  }
  group.produce_all();
  group.require_all_trained(20s);
  group.check_exact();
}

TEST_CASE("Re-forming: a device that is stopped for longer than the deadline learns that it is out") {
  KillGroup group({.devices = 3, .rows_per_device = 2000});
  group.start_all();
  group.require_formed(30s);
  group.produce(1000);
  group.require_progress(10s);
  const auto exchanges = [&](int device, const char* labels) {
    return group.metric(device, std::string("rivulet_collective_operations_total{") + labels + "}");
  };
  CHECK(exchanges(0, R"(op="round",result="ok")") > 0);
  CHECK(exchanges(0, R"(op="round",result="failed")") == 0);
  CHECK(exchanges(0, R"(op="state",result="failed")") == 0);
  group.stop(1);
  const auto out = [&](int i) { return group.status(i).value("world", -1) == 0; };
  INFO(group.process(0).errors());
  REQUIRE(wait_until([&] { return out(0) && out(2); }, 10s));
  std::this_thread::sleep_for(500ms);
  group.resume(1);
  group.require_formed(30s);
  group.check_alive_but(-1);
  for (const int device : {0, 1, 2}) {
    CAPTURE(device);
    CHECK(exchanges(device, R"(op="round",result="failed")") == 1);
    CHECK(exchanges(device, R"(op="state",result="ok")") == 2);
  }
  CHECK(contains(group.process(1).errors(), "the view has ended"));
  group.produce_all();
  group.require_all_trained(20s);
  group.check_exact();
}

TEST_CASE("Re-forming: a device whose link was dead for longer than the deadline comes back") {
  KillGroup group({.devices = 3, .rows_per_device = 800, .counters = 50'000, .bits_per_second = 40e6});
  group.start_all();
  group.require_formed(30s);
  group.produce(400);
  group.require_progress(10s);
  group.cut_off(1);
  const auto out = [&](int i) { return group.status(i).value("world", -1) == 0; };
  INFO(group.process(0).errors());
  REQUIRE(wait_until([&] { return out(0) && out(1) && out(2); }, 10s));
  std::this_thread::sleep_for(500ms);
  group.plug_in(1);
  group.require_formed(60s);
  group.check_alive_but(-1);
  group.produce_all();
  group.require_all_trained(20s);
  group.check_exact();
}

TEST_CASE("Re-forming: again and again in one process leaves nothing behind") {
  const auto times = static_cast<int>(number_or("REFORMS", static_cast<std::uint64_t>(repetitions(10, 100))));
  constexpr int warm_up = 4;
  KillGroup group({.devices = 2, .rows_per_device = 20 * (times + warm_up)});
  group.start_all();
  group.require_formed(30s);
  ProcessStats before;
  ProcessStats after;
  std::vector<Duration> back;
  const auto commits = [&] { return group.metric(0, R"(rivulet_kafka_offset_commits_total{result="ok"})"); };
  for (int k = 0; k < times + warm_up; ++k) {
    group.kill(1);
    group.start(1);
    group.produce(20);
    back.push_back(group.wait_until_back(1, 30s));
    group.require_caught_up(30s);
    // With its first commit, which may be late, it opens the client that it keeps.
    if (k == 0) REQUIRE(wait_until([&] { return commits() > 0; }, 30s));
    after = group.process(0).stats().value_or(ProcessStats{});
    if (k >= warm_up) continue;
    before.threads = std::max(before.threads, after.threads);
    before.open_files = std::max(before.open_files, after.open_files);
    before.rss_bytes = after.rss_bytes;
  }
  CHECK(group.status(0).value("view", 0) > times);
  // A page in progress has a temporary descriptor; leaked ones stay.
  static_cast<void>(wait_until(
      [&] {
        after = group.process(0).stats().value_or(ProcessStats{});
        return after.open_files <= before.open_files && after.threads <= before.threads;
      },
      5s));
  CHECK(after.open_files <= before.open_files);
  CHECK(after.threads <= before.threads);
  const double grown = static_cast<double>(after.rss_bytes) / static_cast<double>(before.rss_bytes) - 1;
  CHECK(grown < 0.01);
  report_figure("re-formations in one process", times, "views");
  report_figure("descriptors more after them", after.open_files - before.open_files, "descriptors");
  report_figure("threads more after them", after.threads - before.threads, "threads");
  report_figure("memory more after them", 100 * grown, "%");
  report_figure("small model: applied round after the killed process is up, p50",
                to_seconds(percentile(back, 0.5)), "s");
  report_figure("small model: applied round after the killed process is up, p95",
                to_seconds(percentile(back, 0.95)), "s");
  group.check_exact();
}

TEST_CASE(
    "Re-forming: strangers at the peer ports disturb no view, and delay forming by a deadline at most") {
  const auto seed = seed_or(1);
  CAPTURE(seed);
  KillGroup group({.devices = 3, .rows_per_device = 3000});
  std::set<int> pages;
  for (int i = 0; i < 3; ++i) pages.insert(group.http_port(i));
  Strangers strangers(pages, seed);
  group.start_all();
  strangers.visit(pids_of(group));
  group.require_formed(30s);
  const auto view_of_first = [&] {  // with many clients a page may need a second request
    int view = 0;
    wait_until([&] { return (view = group.status(0).value("view", 0)) > 0; }, 10s);
    return view;
  };
  const auto view = view_of_first();
  for (int i = 0; i < 15; ++i) {
    group.produce(60);
    if (i == 5) strangers.crowd(200);
    std::this_thread::sleep_for(100ms);
  }
  group.require_progress(5s);
  CHECK(view_of_first() == view);
  for (int k = 0; k < repetitions(2, 20); ++k) {
    group.kill(2);
    group.start(2);
    strangers.visit(pids_of(group));
    strangers.crowd(200);
    group.produce(60);
    const Duration back = group.wait_until_back(2, 30s);
    CHECK(back < 3s + 5s);  // the deadline of connecting
    report_figure("back among strangers after", to_seconds(back), "s");
  }
  CHECK(strangers.called() > 600);
  group.check_alive_but(-1);
  group.produce_all();
  group.require_all_trained(20s);
  group.check_exact();
  report_figure("connections that strangers tried", strangers.called(), "connections");
}
