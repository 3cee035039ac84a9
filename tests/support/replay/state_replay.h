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

/// What a replay of a whole run came to.
struct StateReplayReport {
  std::uint64_t views = 0;
  std::uint64_t rounds = 0;            ///< of the log that were gone through
  std::uint64_t steps = 0;             ///< that were made, those included which a later view did again
  std::uint64_t rows = 0;              ///< trained for them
  std::uint64_t digests_compared = 0;  ///< that rounds or views recorded
  Stamp stamp;
  Digest digest;  ///< of the state at the end
  std::vector<std::string> notes;
  std::optional<PlanReplayReport::Found> difference;  ///< the first: the replay ended there
};

struct StateReplayOptions {
  std::string log;
  std::string state;  ///< checkpoint that it begins with; empty = the first state of the job, from its seed
};

/// Trains again what a decision log says was trained: the rows that each device used in each round are read
/// from `open`, and Trainer, sessions, compressors and collectives of the configuration, and the fold of
/// offsets make the recorded steps of them. Every number that the log holds of a step (rows, losses, digests)
/// must come out to a bit. A view that began with an older state than its predecessor ended with begins with
/// that again. Errors: invalid_config (the log is of another configuration), io, bad_record (with file and
/// line; also: the log has rounds that this cannot do again), unavailable (rows), cancelled.
Result<StateReplayReport> replay_state(const LoadedConfig& loaded, const Catalog& catalog,
                                       const StateReplayOptions& options, const OpenReplayStream& open,
                                       const std::function<void(const StateReplayReport&)>& progress,
                                       const StopRequest& stop);

}  // namespace rivulet::runtime
