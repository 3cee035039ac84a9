// Groups of real nodes under drawn faults: whatever happens, no checker finds anything. A failing seed prints
// the line that repeats it and the smallest schedule that still fails; SIM_TALK=1 lets the devices say what
// they do, and -ns with SIM_SCHEDULE=FILE runs a schedule out of a file.
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/support/effort.h"
#include "tests/support/sim_group.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

constexpr std::size_t events_per_run = 150;

/// A sanitizer makes a run a hundred times as long, and keeps what was freed for a while.
constexpr bool sanitized = !std::string_view(RIVULET_SANITIZE).empty();
constexpr std::size_t growth_max = std::size_t{sanitized ? 512 : 16} << 20U;

/// What repeats the run that is going on, also when a check of the product ends the process.
char repeat_line[160];

extern "C" void say_how_to_repeat(int signal_number) {
  std::fputs(repeat_line, stderr);
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void remember_seed(std::uint64_t seed) {
  std::snprintf(repeat_line, sizeof repeat_line,
                "to repeat: RIVULET_SEED=%llu build/release/simulation_faults -tc='Faults: whatever*'\n",
                static_cast<unsigned long long>(seed));
  std::signal(SIGABRT, say_how_to_repeat);
  std::signal(SIGSEGV, say_how_to_repeat);
}

/// Nothing, or what was found and how to find it again.
std::string report_of(const SimSchedule& schedule, const Finding& finding) {
  if (finding.empty()) return {};
  const auto alike = [&](const SimSchedule& other) {
    return simulate(other).finding.substr(0, 2) == finding.substr(0, 2);
  };
  return finding + "\n" + repeat_line + "the smallest schedule that does it:\n" +
         text_of(minimised(schedule, alike));
}

struct Totals {
  std::uint64_t views = 0, runs = 0, lost = 0, commits = 0, steps = 0, starts = 0;
  double virtual_seconds = 0;
  void add(const SimOutcome& one) {
    views += one.views;
    commits += one.commits;
    steps += one.steps;
    starts += one.starts;
    lost += one.lost ? 1 : 0;
    virtual_seconds += one.seconds;
    ++runs;
  }
  void report(double seconds) const {
    report_figure("faults.views", static_cast<double>(views), "views");
    report_figure("faults.runs", static_cast<double>(runs), "runs");
    report_figure("faults.lost", static_cast<double>(lost), "runs");
    report_figure("faults.commits", static_cast<double>(commits), "commits");
    report_figure("faults.steps", static_cast<double>(steps), "steps");
    report_figure("faults.starts", static_cast<double>(starts), "starts");
    report_figure("faults.time", seconds, "s");
    report_figure("faults.views_per_second", static_cast<double>(views) / seconds, "views/s");
    report_figure("faults.virtual_days", virtual_seconds / 86'400, "days");
  }
};

}  // namespace

TEST_CASE("Faults: whatever happens to a group, nothing that was promised is broken") {
  const auto wanted = sanitized ? 100 : static_cast<std::uint64_t>(repetitions(600, 1'000'000));
  const std::uint64_t runs_least = sanitized ? 6 : 20;
  const auto began = std::chrono::steady_clock::now();
  Totals all;
  ProcessUse warm;
  for (std::uint64_t seed = seed_or(1); all.views < wanted || all.runs < runs_least; ++seed) {
    remember_seed(seed);
    const SimSchedule schedule = draw_schedule(seed, events_per_run);
    const SimOutcome one = simulate(schedule);
    const std::string report = report_of(schedule, one.finding);
    REQUIRE_MESSAGE(report.empty(), report);
    all.add(one);
    if (all.runs == runs_least / 2) warm = use_of_this_process();
  }
  std::signal(SIGABRT, SIG_DFL);
  std::signal(SIGSEGV, SIG_DFL);
  all.report(std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  const Finding kept = check_use(warm, use_of_this_process(), growth_max);
  CHECK_MESSAGE(kept.empty(), kept);
  CHECK(all.commits > all.runs);
  CHECK(4 * all.lost < all.runs);  // what disks lost is no excuse for the rest
}

TEST_CASE("Faults: the schedule in the file SIM_SCHEDULE" * doctest::skip()) {
  const char* path = std::getenv("SIM_SCHEDULE");  // NOLINT(concurrency-mt-unsafe)
  REQUIRE(path != nullptr);
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  const SimOutcome outcome = simulate(parse_schedule(text.str()));
  CHECK_MESSAGE(outcome.finding.empty(), outcome.finding);
}

TEST_CASE("Faults: the same seed gives the same bytes, another seed does not") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const SimOutcome one = simulate(draw_schedule(seed, 60));
    const SimOutcome same = simulate(draw_schedule(seed, 60));
    const SimOutcome other = simulate(draw_schedule(seed + 100, 60));
    CHECK(one.history == same.history);
    CHECK(one.views == same.views);
    CHECK_FALSE(one.history == other.history);
  }
}

TEST_CASE("Faults: a schedule is what its text says, and loses what it does not need") {
  const SimSchedule drawn = draw_schedule(5, 40);
  CHECK(text_of(parse_schedule(text_of(drawn))) == text_of(drawn));
  CHECK(parse_schedule("# a remark\nwithout guard\n").rules == rules_without("guard"));
  const auto has_two = [](const SimSchedule& s) {
    int cuts = 0;
    for (const SimEvent& event : s.events) cuts += event.what == "cut" ? 1 : 0;
    return cuts >= 2;
  };
  REQUIRE(has_two(drawn));
  CHECK(minimised(drawn, has_two).events.size() == 2);
}
