// A protocol that lacks one of its rules is found out: by schedules that are kept, and by drawing.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/effort.h"
#include "tests/support/sim_group.h"
#include "tests/support/source_text.h"
#include "tests/support/tree.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

namespace fs = std::filesystem;

constexpr int tries_max = 300;

std::vector<fs::path> kept_schedules() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(RIVULET_SOURCE_DIR "/tests/simulation/corpus"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

SimSchedule read_schedule(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return parse_schedule(text.str());
}

std::string text_of_file(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
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
    // What breaks it is a matter of milliseconds: a product that takes others is tried around it.
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

TEST_CASE("Mutations: drawing finds each of them") {
  // Which faults come together is chance: each search is bounded, and what it took is said.
  const auto seeds_max = static_cast<std::uint64_t>(repetitions(0, 20'000));
  const auto all_began = std::chrono::steady_clock::now();
  for (const auto* rule : {"fence", "guard", "restamp"}) {
    const auto began = std::chrono::steady_clock::now();
    std::uint64_t seed = seed_or(1);
    const std::uint64_t last = seed + seeds_max;
    Finding finding;
    SimSchedule schedule;
    for (; seed < last && finding.empty(); ++seed) {
      schedule = draw_schedule(seed, 150);
      schedule.rules = rules_without(rule);
      finding = simulate(schedule).finding;
      schedule.rules = {};
      if (!finding.empty() && !simulate(schedule).finding.empty())
        finding.clear();  // not for want of the rule
    }
    if (seeds_max == 0) continue;
    report_figure(("faults.seeds_without_" + std::string(rule)).c_str(),
                  static_cast<double>(seed - last + seeds_max), "seeds");
    report_figure(("faults.seconds_without_" + std::string(rule)).c_str(), seconds_since(began), "s");
    CHECK_MESSAGE(!finding.empty(), rule);
    std::printf("without %s, seed %llu: %s\n", rule, static_cast<unsigned long long>(seed - 1),
                finding.c_str());
  }
  CHECK(seconds_since(all_began) < 3600);
}

TEST_CASE("Mutations: nothing that is shipped can take a rule away") {
  for (const auto* folder : {"runtime/wiring", "runtime/cli", "runtime/config", "runtime/http"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(RIVULET_SOURCE_DIR) / folder))
      if (entry.is_regular_file())
        CHECK_MESSAGE(text_of_file(entry.path()).find("rules") == std::string::npos, entry.path().string());
}
