#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sync/transport/transport.h"
#include "tests/support/group_support.h"
#include "tests/support/parts/policy/compressed.h"

/// Three devices whose model counts rows in its parameters, so that every row has a number of its own that
/// says how much of it is in the agreed state; what that must be is added up in double from the decisions
/// alone.
namespace rivulet::testing {

inline constexpr std::size_t mass_rows = 1200;  ///< of a device, that have a number of their own
inline constexpr std::uint32_t mass_world = 3;
inline constexpr double mass_rounding = 1e-7;  ///< of a row's weight

struct MassRun {
  std::string compressor = "exact_topk";
  std::int64_t local_steps = 0;  ///< of each device before the group agrees; 0: it agrees after every batch
  std::string collective = "gather";
  bool both_ways = false;  ///< gradients and movements by turns
  bool overlap = false;    ///< own steps go on while the group agrees, which takes longer than one of them
  double rate = 1;         ///< of learning
  sync::Lane lane = sync::Lane::facts;
  int deaf_after = 0;  ///< sends of device 1 on the lane; 0: never
  int deaf_again = 0;  ///< ... and after N of each further view; 0: not
  std::uint64_t steps = compressed_steps + 10;
  std::size_t rows = mass_rows;  ///< of each device; beyond mass_rows their numbers come again
  std::size_t rows_of_last = mass_rows;
  bool slow_last = false;  ///< the last device's link has a tenth of the others' bandwidth
  std::vector<runtime::Fault> faults;
  std::vector<RecordedRound> rounds;  ///< as device 0 saw them
  std::vector<float> parameters;
  std::uint64_t views = 0;
  std::uint64_t step = 0;
  std::uint64_t early_used = 0;
  std::vector<sync::policy::ControllerMemory> remembered;
  bool agreed = true;

  std::string when;                                 ///< a policy of its own; empty: by the above
  std::string compression;                          ///< the same
  bool keeps_rounds = true;                         ///< in `rounds`
  std::vector<double> expected;                     ///< what the parameters must be, see mass_off_by()
  std::unique_ptr<runtime::DecisionLog> decisions;  ///< of device 0, besides
  /// Looks at the group while it runs; true ends it.
  std::function<bool(runtime::SimulatedGroup&)> watch;
};

void run_mass(MassRun& run);
/// The largest difference over the rows of a device, from what the parameters must be.
double mass_off_by(const MassRun& run, std::size_t device);

}  // namespace rivulet::testing
