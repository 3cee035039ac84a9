#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sync/membership/fold.h"

/// Faults of a simulated group and their times: as values, as text, drawn from a seed, and minimized while
/// the failure persists.
namespace rivulet::testing {

/// One event. A table in sim_schedule.cpp defines its values.
struct SimEvent {
  std::int64_t at_ms = 0;
  std::string what;
  std::array<std::int64_t, 4> numbers{};
  bool operator==(const SimEvent&) const = default;
};

struct SimSchedule {
  std::uint32_t devices = 3;
  std::uint32_t least = 0;  ///< fewest devices of a view; 0: all
  std::uint32_t quorum = 2;
  std::int64_t disk_ms = 5;          ///< of a checkpoint
  std::uint64_t seed = 1;            ///< for random draws during the run
  std::int64_t jitter_ms = 0;        ///< maximum extra delay of a message
  std::string reduction = "gather";  ///< sync.collective
  std::string policy = "stream";     ///< batch.policy
  std::string speculate = "yes";     ///< sync.speculate: yes or no
  std::string copies = "no";         ///< yes: devices copy the state, though it is small, before they join
  sync::membership::Rules rules;     ///< without one of them: a mutation
  std::vector<SimEvent> events;
};

/// "fence", "guard" or "restamp"; empty: all rules.
sync::membership::Rules rules_without(const std::string& rule);

/// Draws `events` events from the seed.
SimSchedule draw_schedule(std::uint64_t seed, std::size_t events);

/// The same group and duration without events.
SimSchedule without_faults(const SimSchedule& schedule);

/// One line each, in the format of parse_schedule().
std::string text_of(const SimSchedule& schedule);
/// Aborts on errors: the text is a file of the test. Lines with # are comments.
SimSchedule parse_schedule(const std::string& text);
SimSchedule read_schedule(const std::filesystem::path& path);

/// Moves every event by up to `ms`, drawn from the seed.
SimSchedule jittered(const SimSchedule& schedule, std::uint64_t seed, std::int64_t ms);

/// Removes everything from the schedule that `fails` does not need (delta debugging, one pass after another).
SimSchedule minimised(SimSchedule schedule, const std::function<bool(const SimSchedule&)>& fails);

}  // namespace rivulet::testing
