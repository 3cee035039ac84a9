#pragma once
#include <memory>
#include <string>

#include "runtime/node/node.h"
#include "runtime/process/stop.h"
#include "runtime/state/agreed_state.h"
#include "runtime/train/worker.h"

namespace rivulet::runtime {

/// The parts that a device builds from the configuration.
struct ReplayLearner {
  std::unique_ptr<devices::Device> device;
  std::unique_ptr<devices::Trainer> trainer;
  WorkerConfig config;
};
/// Errors: those of its parts.
Result<ReplayLearner> make_replay_learner(const Config& config, const Catalog& catalog,
                                          const StopRequest& stop);
/// Returns the first state of a replay: from this file, or that of a new run. Errors: those of the file.
Result<AgreedState> state_at_begin(const Config& config, const std::string& file, ReplayLearner& learner);

}  // namespace rivulet::runtime
