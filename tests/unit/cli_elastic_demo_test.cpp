#include <doctest/doctest.h>

#include <signal.h>

#include <cmath>
#include <set>

#include "runtime/cli/demo/demo_fate.h"
#include "runtime/cli/demo/demo_plan.h"
#include "runtime/cli/demo/elastic_script.h"
#include "runtime/config/config.h"
#include "tests/support/places.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::runtime::cli;

namespace {

Result<DemoPlan> plan_of(const testing::TempDir& folder, const DemoOptions& given) {
  DemoOptions options = given;
  options.keep = (folder.path() / "demo").string();
  options.data = testing::source_path("examples/mnist/data");
  return plan_demo(options);
}

/// Value after `flag`.
std::string value_of(const std::vector<std::string>& arguments, const char* flag) {
  const auto at = std::ranges::find(arguments, flag);
  return at == arguments.end() ? "" : *(at + 1);
}

/// Four devices that train together.
struct Group {
  Group() {
    view.seconds = 1;
    for (std::size_t i = 0; i < 4; ++i) join(i);
    settle(4, 0);
  }
  void join(std::size_t i) {
    view.devices.emplace_back();
    view.devices.back().id = device_name(i);
  }
  /// All that train are in a view of this size; their time without a step has grown by `gap_s`.
  void settle(std::int64_t world, double gap_s) {
    for (std::size_t i = 0; i < view.devices.size(); ++i) {
      if (gone.contains(i)) continue;
      view.devices[i].state = "training";
      view.devices[i].world = world;
      view.devices[i].view_gaps_s = view.devices[i].view_gaps_s.value_or(0) + gap_s;
    }
  }
  GroupView view;
  std::set<std::size_t> gone;
};

constexpr ElasticPlan plan{.killed = 2, .added = 4, .stopped = 1, .kill_at = 8, .add_at = 16, .stop_at = 28};

}  // namespace

TEST_CASE("Elastic demo: two different devices, never the one that measures, drawn from the seed") {
  std::set<std::pair<std::size_t, std::size_t>> drawn;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const ElasticPlan one = plan_elastic(4, 40, seed);
    CHECK(one.killed >= 1);
    CHECK(one.killed <= 3);
    CHECK(one.stopped >= 1);
    CHECK(one.stopped <= 3);
    CHECK(one.killed != one.stopped);
    CHECK(one.added == 4);
    drawn.emplace(one.killed, one.stopped);
    CHECK(plan_elastic(4, 40, seed).killed == one.killed);
  }
  CHECK(drawn.size() == 6);
  const ElasticPlan three = plan_elastic(3, 10, 1);
  CHECK(three.killed + three.stopped == 3);
  CHECK(three.kill_at == doctest::Approx(2));
  CHECK(three.add_at == doctest::Approx(4));
  CHECK(three.stop_at == doctest::Approx(7));
}

TEST_CASE(
    "Elastic demo: the newcomer has a name, folder and port of its own, and the dead device's partition") {
  const testing::TempDir folder;
  auto made = plan_of(folder, {.model = "linear", .elastic = true});
  REQUIRE(made);
  DemoPlan& demo = made.value();
  REQUIRE(demo.elastic);
  CHECK(demo.devices() == 4);
  CHECK(demo.processes() == 5);
  std::set<std::string> ports;
  for (std::size_t i = 0; i < demo.processes(); ++i)
    ports.insert(value_of(device_arguments(demo, i, 40), "--http"));
  CHECK(ports.size() == 5);
  const auto newcomer = device_arguments(demo, 4, 20);
  CHECK(value_of(newcomer, "--id") == "device-5");
  CHECK(value_of(newcomer, "--partitions") == std::to_string(demo.elastic->killed));
  CHECK(value_of(device_arguments(demo, 0, 20), "--partitions") == "0");
  int staying = 0;
  for (std::size_t i = 0; i < demo.processes(); ++i) staying += demo.stays(i) ? 1 : 0;
  CHECK(staying == 3);
  CHECK_FALSE(demo.stays(demo.elastic->killed));
  CHECK_FALSE(demo.stays(demo.elastic->stopped));
  demo.brokers = "127.0.0.1:1234";
  ConfigInput input;
  input.file = folder.write("job.toml", job_file_text(demo)).string();
  const auto loaded = load_config(input);
  for (const auto& problem : loaded.problems) MESSAGE(problem.text());
  CHECK(loaded.problems.empty());
  CHECK(loaded.config.job.devices == GroupSizes(3, 4, 5));
  CHECK(loaded.config.checkpoint.quorum <= loaded.config.job.devices.min);
}

TEST_CASE("Elastic demo: too few devices or too little time are refused") {
  const testing::TempDir folder;
  for (const DemoOptions& wrong :
       {DemoOptions{.devices = 2, .elastic = true}, DemoOptions{.seconds = 9, .elastic = true}}) {
    const auto refused = plan_of(folder, wrong);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::usage);
    CHECK(refused.error().message.starts_with("--elastic requires "));
  }
}

TEST_CASE("Elastic demo: each change is made once, in time, and only after the group has continued") {
  using Act = ElasticScript::Act;
  ElasticScript script(plan);
  Group group;
  CHECK(script.next(group.view) == Act::none);
  group.view.seconds = 8;
  CHECK(script.next(group.view) == Act::kill);
  CHECK(script.next(group.view) == Act::none);
  group.gone = {2};
  group.view.devices[2].state = "killed";
  CHECK_FALSE(script.measure(group.view));  // the others have not noticed it
  group.settle(3, 0);
  CHECK_FALSE(script.measure(group.view));  // a view without a step
  group.view.devices[0].view_gaps_s = 0.5;
  group.view.devices[1].world = 4;
  CHECK_FALSE(script.measure(group.view));  // the page of device-2 is an old one
  group.view.devices[1].world = 3;
  group.view.devices[1].state = "forming";
  CHECK_FALSE(script.measure(group.view));
  group.view.seconds = 20;
  CHECK(script.next(group.view) == Act::none);
  group.settle(3, 0.25);
  const auto killed = script.measure(group.view);
  REQUIRE(killed);
  CHECK(killed->gap_s == 0.75);  // the longest
  CHECK(killed->at_s == 8);
  CHECK(words_of_change(*killed) == "device-3 was killed for good; the others made no step for 750 ms");
  CHECK_FALSE(script.measure(group.view));  // once

  CHECK(script.next(group.view) == Act::add);
  group.join(4);
  group.view.devices[4].state = "joining";
  CHECK_FALSE(script.measure(group.view));
  group.settle(4, 0.125);
  group.view.devices[4].view_gaps_s = 9;  // the newcomer's own do not count
  const auto added = script.measure(group.view);
  REQUIRE(added);
  CHECK(added->gap_s == 0.125);
  CHECK(words_of_change(*added) == "device-5 joined; the others made no step for 125 ms");

  CHECK(script.next(group.view) == Act::none);
  group.view.seconds = 28.5;
  CHECK(script.next(group.view) == Act::stop);
  CHECK_FALSE(script.complete());
  CHECK(words_of_change(script.changes().back()) ==
        "device-2 was stopped, and left; the others did not continue");
  group.gone = {1, 2};
  group.settle(3, 1.5);
  CHECK(script.measure(group.view));
  CHECK(script.next(group.view) == Act::none);
  CHECK(script.complete());
  REQUIRE(script.changes().size() == 3);
  CHECK(words_of_change(script.changes().back()) ==
        "device-2 was stopped, and left; the others made no step for 1.5 s");
}

TEST_CASE(
    "Elastic demo: who was killed or stopped by it is not started again; who fails by itself is a failure") {
  CHECK(fate_of({.signal = SIGKILL, .intended = true}) == Fate::done);
  CHECK(fate_of({.code = 0, .intended = true, .missed = true}) == Fate::done);
  CHECK(fate_of({.code = 75, .intended = true}) == Fate::fatal);
  CHECK(fate_of({.signal = SIGSEGV, .intended = true}) == Fate::fatal);
}

TEST_CASE("Elastic demo: the summary has the changes, and null for a gap that was not seen") {
  Summary summary;
  CHECK(to_json(summary).find("changes") == std::string::npos);
  summary.changes = {{8, "killed", "device-3", 0.25}, {16, "added", "device-5"}};
  CHECK(to_json(summary).ends_with(
      R"("changes":[{"at_s":8.0,"what":"killed","device":"device-3","gap_s":0.25},{"at_s":16.0,"what":"added","device":"device-5","gap_s":null}]})"));
}
