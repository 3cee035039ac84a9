// Finds a protocol without one of its rules: by stored schedules, and by drawing.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/effort.h"
#include "tests/support/places.h"
#include "tests/support/sim_group.h"
#include "tests/support/source_text.h"
#include "tests/support/tree.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

namespace fs = std::filesystem;

constexpr int tries_max = 300;
constexpr std::uint64_t searches = 5;
/// A missing guard is found within a few hundred views. Disabled under sanitizers, which are a hundred times
/// slower.
constexpr std::uint64_t guard_views = std::string_view(RIVULET_SANITIZE).empty() ? 5'000 : 0;

std::vector<fs::path> kept_schedules() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(source_path("tests/simulation/corpus")))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string text_of_file(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Draws runs without a rule until a checker finds an error that does not occur with all rules.
struct Search {
  Finding finding;
  std::uint64_t seed = 0;  ///< of the last run
  std::uint64_t views = 0;
};
Search search_without(const std::string& rule, std::uint64_t first_seed, std::uint64_t views_max) {
  Search search{{}, first_seed, 0};
  while (true) {
    SimSchedule schedule = draw_schedule(search.seed, 100);
    schedule.rules = rules_without(rule);
    const SimOutcome outcome = simulate(schedule);
    search.views += outcome.views;
    schedule.rules = {};
    if (!outcome.finding.empty() && simulate(schedule).finding.empty()) search.finding = outcome.finding;
    if (!search.finding.empty() || search.views >= views_max) return search;
    ++search.seed;
  }
}

double seconds_since(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace

TEST_CASE("Mutations: every kept schedule breaks the protocol that it is for, and not the whole one") {
  std::vector<std::string> found;
  for (const fs::path& path : kept_schedules()) {
    CAPTURE(path.filename().string());
    const SimSchedule kept = read_schedule(path);
    // The failure depends on milliseconds: if the product's timing has changed, tries neighbouring schedules.
    Finding broken;
    int tries = 0;
    for (; broken.empty() && tries < tries_max; ++tries) {
      const SimSchedule near = tries == 0 ? kept : jittered(kept, static_cast<std::uint64_t>(tries), 100);
      broken = simulate(near).finding;
      SimSchedule whole = near;
      whole.rules = {};
      const Finding found_in_whole = simulate(whole).finding;
      CHECK_MESSAGE(found_in_whole.empty(), found_in_whole);
      if (!broken.empty() && tries > 0) MESSAGE("now it is this one:\n", text_of(near));
    }
    CHECK_MESSAGE(broken.starts_with("C4"), broken);
    report_figure(("faults.tries_" + path.stem().string()).c_str(), tries, "schedules");
    found.push_back(path.stem().string());
  }
  for (const auto* rule : {"fence", "guard", "restamp"})
    CHECK_MESSAGE(
        std::any_of(found.begin(), found.end(), [&](const auto& name) { return name.starts_with(rule); }),
        rule);
}

TEST_CASE("Mutations: what drawing needs to find each of them") {
  // Whether faults coincide is chance: searches are bounded and report their effort. The schedules above
  // guarantee that a missing fence or restamp is found.
  const auto views_asked = number_or("SIM_VIEWS", static_cast<std::uint64_t>(repetitions(0, 20'000)));
  const auto began = std::chrono::steady_clock::now();
  for (const auto* rule : {"fence", "guard", "restamp"}) {
    const bool is_guard = std::string_view(rule) == "guard";
    const auto views_max = is_guard ? std::max(views_asked, guard_views) : views_asked;
    for (std::uint64_t search = 0; search < searches && views_max > 0; ++search) {
      const Search made = search_without(rule, seed_or(1) + search * 1'000'000, views_max);
      if (is_guard) CHECK_MESSAGE(made.finding.starts_with("C4"), made.views);
      const std::string name = "faults.without_" + std::string(rule);
      report_figure((name + (made.finding.empty() ? ".not_found_in" : ".found_in")).c_str(),
                    static_cast<double>(made.views), "views");
      if (!made.finding.empty())
        std::printf("without %s, seed %llu: %s\n", rule, static_cast<unsigned long long>(made.seed),
                    made.finding.c_str());
    }
  }
  report_figure("faults.seconds_of_searches", seconds_since(began), "s");
}

TEST_CASE("Mutations: nothing that is shipped can take a rule away") {
  for (const auto* folder : {"runtime/wiring", "runtime/cli", "runtime/config", "runtime/status/http"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_path()) / folder))
      if (entry.is_regular_file())
        CHECK_MESSAGE(text_of_file(entry.path()).find("rules") == std::string::npos, entry.path().string());
}
