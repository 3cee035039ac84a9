#include "tests/support/sim_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string_view>

#include "core/check.h"
#include "core/rng.h"

namespace rivulet::testing {
namespace {

/// Range of each value of a drawn event: 0 .. below - 1. `rare`: absent from most runs.
struct EventKind {
  const char* what;
  int weight;
  std::array<std::int64_t, 4> below;  ///< device_number: a device
  bool rare = false;
};
constexpr std::int64_t device_number = -1;
constexpr std::uint64_t jitter_most = 40;
constexpr EventKind kinds[] = {
    {"kill", 4, {device_number, 20, 400, 0}},              // device, effects before it, ms until its restart
    {"power", 4, {device_number, 20, 400, 1 << 20}},       // the same, and a seed for the disk's contents
    {"stop", 2, {device_number, 400, 0, 0}},               // device, ms until its restart
    {"everybody", 1, {400, 1 << 20, 0, 0}},                // all lose power: ms, seed
    {"cut", 14, {device_number, 0, 0, 0}},                 // its connections break
    {"block", 3, {device_number, device_number, 800, 0}},  // no messages from one to the other for N ms
    {"isolate", 3, {device_number, 800, 0, 0}},            // device, ms
    {"mute", 5, {device_number, 600, 0, 0}},               // blocks its payloads for N ms
    {"silent", 3, {1500, 0, 0, 0}},                        // no rows for N ms
    {"slow", 2, {40, 400, 0, 0}},                          // ms of latency, for N ms
    {"lose", 3, {device_number, 0, 0, 0}},                 // its next record is lost
    {"repeat", 3, {device_number, 2000, 0, 0}},            // its next record is duplicated N ms later
    {"delay", 3, {device_number, 2000, 0, 0}},             // its next record is delayed by N ms
    {"away", 3, {device_number, 1500, 0, 0}},              // this device cannot reach the broker for N ms
    {"full", 2, {device_number, 6, 0, 0}},                 // N calls report a full disk
    {"eio", 2, {device_number, 3, 0, 0}},                  // N calls fail
    {"unreadable", 2, {device_number, 1500, 0, 0}},        // its disk is unreadable for N ms
    {"rot", 1, {device_number, 1 << 20, 0, 0}},            // flips a bit of its newest file: seed
    {"wipe", 1, {device_number, 400, 0, 0}, true},         // a new disk, and ms until the device's restart
    {"delete", 2, {device_number, 300, 0, 0}, true},       // retention: keeps N records of its rows
    {"gap", 3, {0, 0, 0, 0}, true},                        // a gap in the log: a SNAP is due
    {"behead", 3, {4, 0, 0, 0}, true},                     // truncates the log to N records and its last SNAP
    {"halt", 1, {400, 1 << 20, 0, 0}, true},               // rivulet stop; ms until devices restart, a nonce
    {"anew", 1, {400, 1 << 20, 0, 0}, true},               // the same, followed by --new-run
    {"saving", 3, {device_number, 8, 400, 1 << 20}},       // as power, but counts only disk calls
    {"freeze", 4, {device_number, 1500, 0, 0}, true},      // as SIGSTOP, for N ms
    {"behind",
     4,
     {device_number, 1500, 0, 0},
     true},  // offline while a SNAP is written and everything before it deleted
};

/// Frequency of each kind in one run. Rare kinds occur in every third run. Of the others, some are left out
/// at random, so that the rest interact more.
using Weights = std::array<int, std::size(kinds)>;
Weights draw_weights(Rng& rng) {
  Weights weights{};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t drawn = rng.below(6);
    const bool comes = kinds[i].rare ? drawn < 2 : drawn > 0;
    weights[i] = comes ? kinds[i].weight : 0;
  }
  return weights;
}

/// If one disk suffices for a commit, replacing it ends the run without a result.
void keep_disks(Weights& weights) {
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (std::string_view(kinds[i].what) == "wipe") weights[i] = 0;
}

const EventKind& draw_kind(Rng& rng, const Weights& weights) {
  const int all = std::accumulate(weights.begin(), weights.end(), 0);
  auto drawn = all == 0 ? 0 : static_cast<int>(rng.below(static_cast<std::uint64_t>(all)));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (drawn < weights[i]) return kinds[i];
    drawn -= weights[i];
  }
  return kinds[0];
}

SimEvent draw_event(Rng& rng, const Weights& weights, std::uint32_t devices) {
  const EventKind& kind = draw_kind(rng, weights);
  SimEvent event{0, kind.what, {}};
  for (std::size_t i = 0; i < event.numbers.size(); ++i) {
    const std::int64_t below = kind.below[i] == device_number ? devices : kind.below[i];
    if (below > 0) event.numbers[i] = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(below)));
  }
  return event;
}

/// Draws the job, apart from its events.
void draw_job(std::uint64_t seed, SimSchedule& schedule) {
  Rng rng = Rng::derive(seed, "job");
  schedule.seed = seed;
  schedule.jitter_ms = rng.below(4) == 0 ? 0 : static_cast<std::int64_t>(1 + rng.below(jitter_most));
  schedule.reduction = rng.below(2) == 0 ? "gather" : "sum";
  schedule.policy = rng.below(4) == 0 ? "fixed" : "stream";
  schedule.speculate = rng.below(3) == 0 ? "no" : "yes";
}

/// Half of the groups change their size.
std::uint32_t draw_least(std::uint64_t seed, std::uint32_t devices) {
  Rng rng = Rng::derive(seed, "least");
  return rng.below(2) == 0 ? 0 : 1 + static_cast<std::uint32_t>(rng.below(devices));
}

/// In half of these, devices that join copy the state first.
std::string draw_copies(std::uint64_t seed, std::uint32_t least) {
  Rng rng = Rng::derive(seed, "copies");
  return least > 0 && rng.below(2) == 0 ? "yes" : "no";
}

/// Lines added later: schedules without them get the default.
std::string text_of_job(const SimSchedule& s) {
  return fmt::format("seed {}\njitter_ms {}\nreduction {}\npolicy {}\nforesee {}\n", s.seed, s.jitter_ms,
                     s.reduction, s.policy, s.speculate);
}

}  // namespace

sync::membership::Rules rules_without(const std::string& rule) {
  sync::membership::Rules rules;
  if (rule == "fence") rules.fence = false;
  if (rule == "guard") rules.guard = false;
  if (rule == "restamp") rules.restamp = false;
  RIVULET_CHECK(rule.empty() || rules != sync::membership::Rules{}, "no such rule");
  return rules;
}

SimSchedule draw_schedule(std::uint64_t seed, std::size_t events) {
  Rng rng = Rng::derive(seed, "schedule");
  SimSchedule schedule;
  schedule.devices = 2 + static_cast<std::uint32_t>(rng.below(4));
  schedule.quorum = 1 + static_cast<std::uint32_t>(rng.below(schedule.devices));
  schedule.disk_ms = static_cast<std::int64_t>(rng.below(30));
  draw_job(seed, schedule);
  schedule.least = draw_least(seed, schedule.devices);
  schedule.copies = draw_copies(seed, schedule.least);
  Weights weights = draw_weights(rng);
  if (schedule.quorum == 1) keep_disks(weights);
  std::int64_t at = 100;
  for (std::size_t i = 0; i < events; ++i) {
    // Sometimes several events at once.
    at += rng.below(4) == 0 ? static_cast<std::int64_t>(rng.below(10))
                            : static_cast<std::int64_t>(20 + rng.below(260));
    schedule.events.push_back(draw_event(rng, weights, schedule.devices));
    schedule.events.back().at_ms = at;
  }
  return schedule;
}

SimSchedule without_faults(const SimSchedule& schedule) {
  SimSchedule calm = schedule;
  calm.events.clear();
  if (!schedule.events.empty()) calm.events.push_back({schedule.events.back().at_ms, "silent", {}});
  return calm;
}

std::string text_of(const SimSchedule& s) {
  std::string text = fmt::format("devices {}\nquorum {}\ndisk_ms {}\n", s.devices, s.quorum, s.disk_ms);
  text += text_of_job(s);
  if (s.least > 0) text += fmt::format("least {}\n", s.least);
  if (s.copies != "no") text += fmt::format("copies {}\n", s.copies);
  if (!s.rules.fence) text += "without fence\n";
  if (!s.rules.guard) text += "without guard\n";
  if (!s.rules.restamp) text += "without restamp\n";
  for (const SimEvent& e : s.events)
    text += fmt::format("at {} {} {} {} {} {}\n", e.at_ms, e.what, e.numbers[0], e.numbers[1], e.numbers[2],
                        e.numbers[3]);
  return text;
}

SimSchedule parse_schedule(const std::string& text) {
  SimSchedule schedule;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    if (!(words >> key) || key.starts_with('#')) continue;
    std::string rule;
    SimEvent event;
    if (key == "devices") words >> schedule.devices;
    if (key == "quorum") words >> schedule.quorum;
    if (key == "least") words >> schedule.least;
    if (key == "copies") words >> schedule.copies;
    if (key == "disk_ms") words >> schedule.disk_ms;
    if (key == "seed") words >> schedule.seed;
    if (key == "jitter_ms") words >> schedule.jitter_ms;
    if (key == "reduction") words >> schedule.reduction;
    if (key == "policy") words >> schedule.policy;
    if (key == "foresee") words >> schedule.speculate;
    if (key == "without" && words >> rule) schedule.rules = rules_without(rule);
    if (key == "at") {
      words >> event.at_ms >> event.what;
      for (auto& number : event.numbers) words >> number;
      schedule.events.push_back(event);
    }
    RIVULET_CHECK(!words.fail(), "a line of a schedule cannot be read");
  }
  return schedule;
}

SimSchedule read_schedule(const std::filesystem::path& path) {
  std::ifstream file(path);
  RIVULET_CHECK(file.is_open(), "the schedule exists");
  std::stringstream text;
  text << file.rdbuf();
  return parse_schedule(text.str());
}

SimSchedule jittered(const SimSchedule& schedule, std::uint64_t seed, std::int64_t ms) {
  Rng rng = Rng::derive(seed, "jitter");
  SimSchedule other = schedule;
  for (SimEvent& event : other.events) {
    const auto by = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(2 * ms + 1))) - ms;
    event.at_ms = std::max<std::int64_t>(event.at_ms + by, 0);
  }
  return other;
}

SimSchedule minimised(SimSchedule schedule, const std::function<bool(const SimSchedule&)>& fails) {
  for (std::size_t part = std::max<std::size_t>(schedule.events.size() / 2, 1); part > 0;) {
    bool smaller = false;
    for (std::size_t from = 0; from < schedule.events.size();) {
      SimSchedule without = schedule;
      const auto first = without.events.begin() + static_cast<std::ptrdiff_t>(from);
      without.events.erase(
          first, first + static_cast<std::ptrdiff_t>(std::min(part, schedule.events.size() - from)));
      if (fails(without)) {
        schedule = std::move(without);
        smaller = true;
      } else {
        from += part;
      }
    }
    if (!smaller || part > 1) part /= 2;
  }
  return schedule;
}

}  // namespace rivulet::testing
