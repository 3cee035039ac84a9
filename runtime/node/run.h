#pragma once
#include <functional>
#include <string>

#include "core/time.h"
#include "runtime/config/config.h"
#include "runtime/process/exit_code.h"
#include "runtime/process/stop.h"
#include "runtime/status/node_status.h"
#include "runtime/status/summary.h"

namespace rivulet::runtime {

struct RunOptions {
  StopAfter stop_after;
  bool dry_run = false;
  bool new_run = false;  ///< start over: the group begins a new run, old checkpoints are kept aside
  /// Called by the main thread some times a second while the device runs: who shows its progress. May be
  /// empty.
  std::function<void(const NodeStatus&, TimePoint now)> watch = {};
};

struct RunResult {
  ExitCode exit = ExitCode::ok;
  std::string message;     ///< one sentence when exit != ok
  Summary summary;         ///< of this device
  std::string state_file;  ///< where the final agreed state was written (data_dir/final.state), if it was
};

/// One device, from opening its stream to a clean end: what `rivulet run` does. Blocks; runs the agents on
/// their threads, HTTP, watchdog. `stop` may be set from a signal handler.
RunResult run_device(const LoadedConfig& loaded, const RunOptions& options, StopRequest& stop);

}  // namespace rivulet::runtime
