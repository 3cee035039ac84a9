// Groups of real nodes under random faults: no checker finds an error. A failing seed prints the line that
// repeats it and the smallest schedule that still fails. SIM_TALK=1 prints the devices' logs; -ns with
// SIM_SCHEDULE=FILE runs a schedule from a file.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "tests/support/effort.h"
#include "tests/support/places.h"
#include "tests/support/sim_group.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

namespace fs = std::filesystem;

constexpr int usual_views = 3'000;  ///< each kind of fault occurs in these
constexpr std::size_t events_per_run = 100;
constexpr std::uint64_t compared_every = 16;  ///< runs between two that are compared with one without faults
constexpr std::uint64_t kept_every = 100;     ///< runs, so that an interrupted count loses little

/// A sanitizer makes a run a hundred times slower, and delays the release of memory.
constexpr bool sanitized = !std::string_view(RIVULET_SANITIZE).empty();
constexpr std::size_t growth_max = std::size_t{sanitized ? 512 : 16} << 20U;

/// Line that repeats the current run, also printed when a check of the product ends the process.
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

/// Empty, or the finding and how to reproduce it.
std::string report_of(const SimSchedule& schedule, const Finding& finding) {
  if (finding.empty()) return {};
  const auto alike = [&](const SimSchedule& other) {
    return simulate(other).finding.substr(0, 2) == finding.substr(0, 2);
  };
  return finding + "\n" + repeat_line + "the smallest schedule that does it:\n" +
         text_of(minimised(schedule, alike));
}

/// C9 over the whole run: the group's loss is close to that of a group without faults at the same step. Batch
/// sizes differ, so bits do too.
constexpr double loss_factor = 1.25;
Finding check_learning(const SimSchedule& schedule, const SimOutcome& outcome, Counts& counts) {
  const SimOutcome calm = simulate(without_faults(schedule));
  const std::size_t steps = std::min(calm.losses.size(), outcome.losses.size());
  if (!calm.finding.empty() || steps == 0) return calm.finding;
  const double ratio = outcome.losses[steps - 1] / calm.losses[steps - 1];
  double& worst = counts["loss_ratio_max"];
  worst = std::max({worst, ratio, 1 / ratio});
  ++counts["compared"];
  return check_loss(outcome.losses[steps - 1], calm.losses[steps - 1], loss_factor);
}

constexpr const char* prefix_of_faults = "of_";

/// Every kind of fault took effect in a run.
void check_kinds(Counts& counts) {
  for (const char* name : sim_fault_names) {
    const std::string fault = prefix_of_faults + std::string(name);
    CHECK_MESSAGE(counts[fault] > 0, fault);
  }
}

void add(Counts& counts, const SimOutcome& one) {
  counts["views"] += static_cast<double>(one.views);
  counts["commits"] += static_cast<double>(one.commits);
  counts["folds_compared"] += static_cast<double>(one.folds_compared);
  counts["steps"] += static_cast<double>(one.steps);
  counts["starts"] += static_cast<double>(one.starts);
  counts["seconds_to_stand_max"] = std::max(counts["seconds_to_stand_max"], one.seconds_to_stand);
  counts["lost"] += one.lost ? 1 : 0;
  for (std::size_t i = 0; i < sim_faults; ++i)
    counts[prefix_of_faults + std::string(sim_fault_names[i])] +=
        static_cast<double>(one.faults.of(static_cast<SimFault>(i)));
  counts["virtual_days"] += one.seconds / 86'400;
  ++counts["runs"];
}

/// In about 5 of 100 runs no disk has the committed state any more. A few more may be chance.
double lost_most(double runs) {
  return 0.06 * runs + 10;
}

/// Counts of this and earlier processes.
class Tally {
 public:
  explicit Tally(std::uint64_t seed)
      : file_("faults." + std::to_string(seed)), counts_(load_progress(file_)) {}
  Counts& counts() { return counts_; }
  [[nodiscard]] std::uint64_t runs() { return static_cast<std::uint64_t>(counts_["runs"]); }
  void keep() {
    const auto now = std::chrono::steady_clock::now();
    counts_["seconds"] += std::chrono::duration<double>(now - since_).count();
    since_ = now;
    save_progress(file_, counts_);
  }
  void report() {
    std::string kinds;
    for (const auto& [name, value] : counts_) {
      if (name.starts_with(prefix_of_faults))
        kinds += fmt::format(" {} {}", name.substr(std::string_view(prefix_of_faults).size()), value);
      else
        report_figure(("faults." + name).c_str(), value, "");
    }
    std::printf("faults that took effect:%s\n", kinds.c_str());
    report_figure("faults.views_per_second", counts_["views"] / counts_["seconds"], "views/s");
  }

 private:
  const std::string file_;
  Counts counts_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

}  // namespace

TEST_CASE("Faults: whatever happens to a group, nothing that was promised is broken") {
  const std::uint64_t first = seed_or(1);
  const auto full = number_or("SIM_VIEWS", 1'000'000);
  const auto wanted = sanitized ? 100 : static_cast<double>(repetitions(usual_views, static_cast<int>(full)));
  const std::uint64_t runs_least = sanitized ? 6 : 20;
  Tally all(first);
  ProcessUse warm;
  for (std::uint64_t here = 0; all.counts()["views"] < wanted || here < runs_least; ++here) {
    const std::uint64_t seed = first + all.runs();
    remember_seed(seed);
    const SimSchedule schedule = draw_schedule(seed, events_per_run);
    const SimOutcome one = simulate(schedule);
    const std::string report = report_of(schedule, one.finding);
    REQUIRE_MESSAGE(report.empty(), report);
    add(all.counts(), one);
    if (here % compared_every == 0) {
      const Finding worse = check_learning(schedule, one, all.counts());
      REQUIRE_MESSAGE(worse.empty(), worse, "\n", repeat_line);
    }
    if (all.runs() % kept_every == 0) all.keep();
    if (here + 1 == runs_least / 2) warm = use_of_this_process();
  }
  std::signal(SIGABRT, SIG_DFL);
  std::signal(SIGSEGV, SIG_DFL);
  all.keep();
  all.report();
  const Finding kept = check_use(warm, use_of_this_process(), growth_max);
  CHECK_MESSAGE(kept.empty(), kept);
  if (all.counts()["views"] >= usual_views) check_kinds(all.counts());
  CHECK(all.counts()["commits"] > all.counts()["runs"]);
  CHECK(all.counts()["folds_compared"] > all.counts()["views"]);
  CHECK(all.counts()["lost"] <
        lost_most(all.counts()["runs"]));  // lost disks are no excuse for other failures
}

TEST_CASE("Faults: who has learned half as much as a group without faults, or twice, is found by its loss") {
  const SimSchedule schedule = draw_schedule(3, 60);
  const SimOutcome one = simulate(schedule);
  Counts counts;
  CHECK(check_learning(schedule, one, counts).empty());
  for (const double pace : {0.5, 2.0}) {
    SimOutcome other = one;
    const std::size_t steps = one.losses.size() / 2;
    REQUIRE(steps > 1);
    other.losses.resize(steps);
    for (std::size_t i = 0; i < steps; ++i)
      other.losses[i] = one.losses[static_cast<std::size_t>(static_cast<double>(i) * pace)];
    CHECK(check_learning(schedule, other, counts).starts_with("C9"));
  }
}

TEST_CASE("Faults: what drawing once found stays mended, also some milliseconds away") {
  constexpr int nearby = 20;
  int files = 0;
  for (const auto& entry : fs::directory_iterator(source_path("tests/simulation/found"))) {
    CAPTURE(entry.path().filename().string());
    const SimSchedule kept = read_schedule(entry.path());
    for (int i = 0; i <= nearby; ++i) {
      const auto seed = static_cast<std::uint64_t>(i);
      const Finding finding = simulate(i == 0 ? kept : jittered(kept, seed, 5)).finding;
      CHECK_MESSAGE(finding.empty(), finding);
    }
    ++files;
  }
  CHECK(files > 0);
}

TEST_CASE("Faults: the schedule in the file SIM_SCHEDULE" * doctest::skip()) {
  const char* path = std::getenv("SIM_SCHEDULE");  // NOLINT(concurrency-mt-unsafe)
  REQUIRE(path != nullptr);
  const SimOutcome outcome = simulate(read_schedule(path));
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
