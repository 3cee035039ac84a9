#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/decisions/plan_replay.h"
#include "runtime/node/catalog.h"
#include "runtime/node/run.h"
#include "tests/support/replay/replay_rows.h"

namespace rivulet::runtime {

/// Result of the replay of a whole run.
struct StateReplayReport {
  std::uint64_t views = 0;
  std::uint64_t rounds = 0;            ///< of the log that were replayed
  std::uint64_t steps = 0;             ///< including those that a later view repeated
  std::uint64_t rows = 0;              ///< trained in them
  std::uint64_t digests_compared = 0;  ///< recorded by rounds or views
  Stamp stamp;
  Digest digest;  ///< of the final state
  std::vector<std::string> notes;
  std::optional<PlanReplayReport::Found> difference;  ///< first difference; it ends the replay
};

struct StateReplayOptions {
  std::string log;
  std::string state;  ///< first checkpoint; empty = the initial state of the job, from its seed
};

/// Repeats the training recorded in a decision log. Reads the rows of each device and round from `open`, and
/// recomputes the steps with the configured Trainer, sessions, compressors and collectives and the fold of
/// offsets. All recorded values of a step (rows, losses, digests) must match bit for bit. A view that began
/// with an older state begins with it again. Errors: invalid_config (the log is of another configuration),
/// io, bad_record (with file and line; also for rounds that cannot be replayed), unavailable (rows),
/// cancelled.
Result<StateReplayReport> replay_state(const LoadedConfig& loaded, const Catalog& catalog,
                                       const StateReplayOptions& options, const OpenReplayStream& open,
                                       const std::function<void(const StateReplayReport&)>& progress,
                                       const StopRequest& stop);

}  // namespace rivulet::runtime
