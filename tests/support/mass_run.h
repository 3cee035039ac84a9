#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sync/transport/transport.h"
#include "tests/support/group_support.h"
#include "tests/support/parts/policy/compressed.h"

/// Three devices whose model counts rows in its parameters: each row has a parameter with its weight in the
/// agreed state. The expected value is computed in double from the decisions alone.
namespace rivulet::testing {

inline constexpr std::size_t mass_rows = 1200;  ///< rows of a device with a parameter each
inline constexpr std::uint32_t mass_world = 3;
inline constexpr double mass_rounding = 1e-7;  ///< of a row's weight

struct MassRun {
  std::string compressor = "exact_topk";
  std::int64_t local_steps = 0;  ///< of each device per synchronization; 0: synchronizes after every batch
  std::string collective = "gather";
  bool both_ways = false;  ///< alternates gradients and deltas
  bool overlap = false;    ///< local steps overlap a synchronization, which takes longer than one step
  double rate = 1;         ///< learning rate
  sync::Lane lane = sync::Lane::facts;
  int deaf_after = 0;  ///< sends of device 1 on the lane; 0: never
  int deaf_again = 0;  ///< ... and after N sends of each further view; 0: not
  std::uint64_t steps = compressed_steps + 10;
  std::size_t rows = mass_rows;  ///< of each device; beyond mass_rows, parameters are reused
  std::size_t rows_of_last = mass_rows;
  bool elastic = false;    ///< the group goes on without a device that leaves
  bool slow_last = false;  ///< the last device's link has a tenth of the bandwidth
  std::vector<runtime::Fault> faults;
  std::vector<RecordedRound> rounds;  ///< as recorded by device 0
  std::vector<float> parameters;
  std::uint64_t views = 0;
  std::uint64_t step = 0;
  std::uint64_t early_used = 0;
  std::vector<sync::policy::ControllerMemory> remembered;
  bool agreed = true;

  std::string when;                                 ///< a policy for the test; empty: from the values above
  std::string compression;                          ///< same
  bool keeps_rounds = true;                         ///< in `rounds`
  std::vector<double> expected;                     ///< expected parameters, see mass_off_by()
  std::unique_ptr<runtime::DecisionLog> decisions;  ///< decision log of device 0
  /// Called while the group runs; true ends it.
  std::function<bool(runtime::SimulatedGroup&)> watch;
};

void run_mass(MassRun& run);
/// The largest deviation from the expected parameters over the rows of a device.
double mass_off_by(const MassRun& run, std::size_t device);

}  // namespace rivulet::testing
