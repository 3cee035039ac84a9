// Every fault in every phase: a device is killed, stopped for longer than the deadline, or disconnected,
// while it is idle, computes, is inside payload bytes, writes a checkpoint, or another one returns.
#include <doctest/doctest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/support/effort.h"
#include "tests/support/kill_harness.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr int phase_devices = 3;
constexpr int burst = 400;  // rows of each partition, enough for the phases of one blow

enum class Phase : std::uint8_t { idle, compute, payload, checkpoint, recovery };

struct Fault {
  Phase phase;
  Blow blow;
};

const char* name_of(Phase phase) {
  static constexpr std::array names{"idle", "compute", "payload", "checkpoint", "recovery"};
  return names.at(static_cast<std::size_t>(phase));
}

const char* name_of(Blow blow) {
  static constexpr std::array names{"killed", "stopped", "cut off"};
  return names.at(static_cast<std::size_t>(blow));
}

Moment moment_of(Phase phase) {
  static constexpr std::array moments{Moment::idle, Moment::compute, Moment::payload, Moment::checkpoint};
  return moments.at(static_cast<std::size_t>(phase));
}

/// Those that no other test covers; all of them in the full run.
std::vector<Fault> faults() {
  if (repetitions(0, 1) == 0)
    return {{Phase::payload, Blow::stop}, {Phase::payload, Blow::cut_off}, {Phase::recovery, Blow::cut_off}};
  std::vector<Fault> all;
  for (const auto phase : {Phase::idle, Phase::compute, Phase::payload, Phase::checkpoint, Phase::recovery})
    for (const auto blow : {Blow::kill, Blow::stop, Blow::cut_off}) all.push_back({phase, blow});
  return all;
}

bool is_out(KillGroup& group, int device) {
  return group.status(device).value("world", -1) == 0;
}

/// Another device has died and returns; the blow falls before it has trained.
bool hit_in_recovery(KillGroup& group, int victim, Blow blow, Rng& rng) {
  const int other = (victim + 1) % phase_devices;
  for (int tries = 0; tries < 10; ++tries) {
    group.kill(other);
    group.start(other);
    std::this_thread::sleep_for(std::chrono::milliseconds(rng.below(500)));
    if (!group.hit(victim, Moment::any, blow, rng, 5s)) return false;
    if (group.page(other).applied == 0) return true;
    group.mend(victim, blow);
    group.require_formed(60s);
  }
  return false;
}

/// The others detect it, stay, and wait; then the blow is undone.
void sit_out(KillGroup& group, int victim, Blow blow) {
  const auto others_are_out = [&] {
    for (int i = 0; i < phase_devices; ++i)
      if (i != victim && !is_out(group, i)) return false;
    return true;
  };
  // A view may still form with a device that announced READY before the blow; it cannot last.
  const auto for_good = [&] {
    if (!others_are_out()) return false;
    std::this_thread::sleep_for(400ms);
    return others_are_out();
  };
  const bool noticed = wait_until(for_good, 30s);
  INFO(group.story());
  REQUIRE(noticed);
  group.check_alive_but(blow == Blow::kill ? victim : -1);
  group.mend(victim, blow);
}

}  // namespace

TEST_CASE("Phases: whatever happens to a device in whatever phase, every row counts once") {
  const auto seed = seed_or(1);
  CAPTURE(seed);
  Rng rng = Rng::derive(seed, "phases");
  const auto all = faults();
  KillGroup group({.devices = phase_devices,
                   .rows_per_device = burst * static_cast<int>(all.size() + 1),
                   .counters = 60'000,
                   .batch_max = 32,
                   .buffer_rows = 128,
                   .bits_per_second = 40e6});
  for (int i = 0; i < phase_devices; ++i) group.page(i).compute_ms = 20;
  group.start_all();
  group.require_formed(30s);
  for (const auto& [phase, blow] : all) {
    const int victim = static_cast<int>(rng.below(phase_devices));
    INFO(name_of(blow), " in ", name_of(phase), ": device ", victim);
    group.produce(burst);
    group.require_progress(20s);
    const bool met = phase == Phase::recovery ? hit_in_recovery(group, victim, blow, rng)
                                              : group.hit(victim, moment_of(phase), blow, rng, 20s);
    REQUIRE_MESSAGE(met, group.story());
    sit_out(group, victim, blow);
    const RealClock clock;
    const auto mended = clock.now();
    group.require_formed(60s);
    report_figure(
        (std::string("group formed after a device was ") + name_of(blow) + " in " + name_of(phase)).c_str(),
        to_seconds(clock.now() - mended), "s");
  }
  group.produce_all();
  group.require_all_trained(20s);
  group.check_exact();
}
