#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sync/membership/fold.h"

/// What happens to a simulated group, and when: as values, as text, drawn from a seed, and made smaller while
/// it still shows what it shows.
namespace rivulet::testing {

/// One thing that happens. What the numbers mean is a table in sim_schedule.cpp.
struct SimEvent {
  std::int64_t at_ms = 0;
  std::string what;
  std::array<std::int64_t, 4> numbers{};
  bool operator==(const SimEvent&) const = default;
};

struct SimSchedule {
  std::uint32_t devices = 3;
  std::uint32_t quorum = 2;
  std::int64_t disk_ms = 5;          ///< what a checkpoint takes
  std::uint64_t seed = 1;            ///< of what is drawn while it runs
  std::int64_t jitter_ms = 0;        ///< so long may a single message be kept from its receiver
  std::string reduction = "gather";  ///< sync.collective
  std::string policy = "stream";     ///< batch.policy
  std::string speculate = "yes";     ///< sync.speculate: yes or no
  sync::membership::Rules rules;     ///< without one of them: a mutation
  std::vector<SimEvent> events;
};

/// "fence", "guard" or "restamp", or empty: all rules hold.
sync::membership::Rules rules_without(const std::string& rule);

/// `events` things, drawn from the seed.
SimSchedule draw_schedule(std::uint64_t seed, std::size_t events);

/// The same group, to which nothing happens for as long.
SimSchedule without_faults(const SimSchedule& schedule);

/// One line each, as parse_schedule() reads it.
std::string text_of(const SimSchedule& schedule);
/// Aborts on what it cannot read: it is the test's own file. Lines that begin with # are remarks.
SimSchedule parse_schedule(const std::string& text);
SimSchedule read_schedule(const std::filesystem::path& path);

/// Every event up to `ms` earlier or later, drawn from the seed.
SimSchedule jittered(const SimSchedule& schedule, std::uint64_t seed, std::int64_t ms);

/// The schedule without all that can be left out while it `fails` (delta debugging, one pass after another).
SimSchedule minimised(SimSchedule schedule, const std::function<bool(const SimSchedule&)>& fails);

}  // namespace rivulet::testing
