// Simulated devices that share parts have the same times and bytes as devices without sharing.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "runtime/decisions/decision.h"
#include "runtime/wiring/simulation_faults.h"
#include "runtime/wiring/simulation_traces.h"
#include "tests/support/aborts.h"
#include "tests/support/group_support.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

struct Scenario {
  runtime::LoadedConfig job;
  runtime::SimulateOptions options;
};

Scenario uneven(std::uint32_t devices) {
  Scenario s{linear_job(devices), {}};
  s.job.config.sync.on_peer_loss = "reform";
  s.options.rates = runtime::make_traces("bursty:60", devices, 3, 20).value();
  s.options.profiles = {{std::chrono::milliseconds(2), 8000}, {std::chrono::milliseconds(5), 500}};
  s.options.link = {std::chrono::milliseconds(1), 12.5e6};
  s.options.stop_after.seconds = 20;
  return s;
}

/// All decisions and digests of a run, and the devices' results.
struct Story {
  std::vector<std::vector<RecordedRound>> decisions;
  std::vector<std::string> ends;
  double seconds = 0;
};

Story explain_round(const Scenario& s, bool apart) {
  Story story;
  story.decisions.resize(s.job.config.job.devices.max);
  runtime::SimulatedParts parts;
  parts.separate = apart;
  parts.check_every = 7;
  parts.decisions = [&](std::size_t device) {
    return std::make_unique<RecordingDecisions>(story.decisions[device]);
  };
  auto group = build_group(s.job, s.options, std::move(parts));
  run_to_end(*group);
  story.seconds = group->seconds();
  const auto summary = group->summary();  // which adds digests to the status
  CHECK(summary.devices.size() == group->size());
  for (std::size_t i = 0; i < group->size(); ++i) {
    auto& node = group->node(i);
    const auto& status = node.status();
    const auto& error = node.worker().ending().error;
    std::ostringstream out;
    out << status.digest() << " step " << node.state().stamp.step << " rows " << status.rows_trained.load()
        << " sent " << status.bytes_sent.load() << " received " << status.bytes_received.load() << " waited "
        << status.wait_s.load() << " synced " << status.sync_s.load() << " " << (error ? error->message : "");
    story.ends.push_back(out.str());
  }
  return story;
}

/// The first round that differs, both ways; empty: none.
std::string first_difference(const std::vector<RecordedRound>& a, const std::vector<RecordedRound>& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const auto line = [i](const RecordedRound& r) {
      return runtime::decision_line(i, r.round, r.table, r.plan);
    };
    if (line(a[i]) != line(b[i])) return line(a[i]) + "\n" + line(b[i]);
    if (!(a[i].table == b[i].table) || !(a[i].plan == b[i].plan))
      return "outside of all lines: " + line(a[i]);
  }
  return a.size() == b.size() ? "" : std::to_string(a.size()) + " rounds or " + std::to_string(b.size());
}

void check_same(const Scenario& s) {
  const Story apart = explain_round(s, true);
  const Story shared = explain_round(s, false);
  CHECK(shared.seconds == apart.seconds);
  std::size_t rounds = 0;
  for (std::size_t device = 0; device < apart.decisions.size(); ++device) {
    CAPTURE(device);
    CHECK(shared.ends[device] == apart.ends[device]);
    CHECK(first_difference(apart.decisions[device], shared.decisions[device]) == "");
    rounds += apart.decisions[device].size();
  }
  CHECK(rounds > 50);
}

}  // namespace

TEST_CASE("Sharing: devices that share compute what devices on their own do, at the same times") {
  for (const std::uint32_t devices : {1U, 2U, 5U, 9U}) {
    CAPTURE(devices);
    check_same(uneven(devices));
  }
}

TEST_CASE("Sharing: also without latency, with long links, and with nothing learned") {
  auto s = uneven(4);
  SUBCASE("no latency") {
    s.options.link = {};
  }
  SUBCASE("slow links") {
    s.options.link = {std::chrono::milliseconds(40), 20e3};
  }
  SUBCASE("timing only") {
    s.options.timing_only = true;
  }
  SUBCASE("dense sum") {
    s.job.config.sync.collective = "sum";
  }
  SUBCASE("digests now and then") {
    s.job.config.sync.digest_every = 10;
  }
  SUBCASE("fixed batches") {
    s.job.config.batch.policy = "fixed";
  }
  SUBCASE("silence") {
    for (auto& trace : s.options.rates) trace = {{0, 100}, {4, 0}, {12, 300}};
  }
  check_same(s);
}

TEST_CASE("Sharing: also when devices die, come back and leave") {
  auto s = uneven(4);
  SUBCASE("killed and started") {
    s.options.faults = runtime::parse_faults("at 5.25 kill b\nat 9 start b\n", "s", 4).value();
  }
  SUBCASE("stopped") {
    s.job.config.sync.on_peer_loss = "exit";  // otherwise the others would wait for it forever
    s.options.faults = runtime::parse_faults("at 6 stop c\n", "s", 4).value();
  }
  SUBCASE("the group ends with it") {
    s.job.config.sync.on_peer_loss = "exit";
    s.options.faults = runtime::parse_faults("at 7.001 kill a\n", "s", 4).value();
  }
  check_same(s);
}

TEST_CASE("Sharing: a device that calls alike what is not is found out") {
  const auto run = [](bool apart) {
    std::size_t made = 0;
    SharedWork work(apart ? nullptr : std::make_shared<ShareCheck>(3));
    for (int i = 0; i < 20; ++i)
      work.once<std::size_t>(nullptr,
                             [&] { return std::make_shared<const std::size_t>(i < 10 ? 1 : ++made); });
  };
  run(true);  // without a check the difference stays unknown
  CHECK(aborts([&] { run(false); }));
}
