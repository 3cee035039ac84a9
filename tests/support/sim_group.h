#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/digest.h"
#include "tests/support/sim_checkers.h"
#include "tests/support/sim_faults.h"
#include "tests/support/sim_schedule.h"

namespace rivulet::testing {

/// Result of a simulated group.
struct SimOutcome {
  Finding finding;  ///< empty: no error
  bool lost =
      false;  ///< no disk had the committed state any more: the group reports it and waits for an operator
  std::uint64_t views = 0;
  std::uint64_t commits = 0;
  std::uint64_t steps = 0;
  std::uint64_t folds_compared = 0;
  std::uint64_t starts = 0;     ///< of processes
  double seconds = 0;           ///< virtual
  double seconds_to_stand = 0;  ///< of these: from the last fault to a view of all and a commit
  std::vector<double> losses;   ///< of the last committed model and its predecessors
  SimFaultCounts faults;        ///< those that took effect
  Digest history;               ///< of all records and states, in order
};

/// Real nodes (Ingest, ledger, Worker, Membership, fold, Checkpointer) over a simulated network, disks and
/// log, under virtual clocks, with a supervisor that restarts ended processes. After the last event all
/// faults are healed, and the group must reach a view and a commit. A pure function of the schedule.
SimOutcome simulate(const SimSchedule& schedule);

}  // namespace rivulet::testing
