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
  bool new_run = false;  ///< start over: begin a new run and move old checkpoints aside
  /// Callback that the main thread calls several times a second while the device runs, to show progress. May
  /// be empty.
  std::function<void(const NodeStatus&, TimePoint now)> watch = {};
  bool cool_down = true;  ///< false only in tests: devices that are lost again and again may join at once
};

struct RunResult {
  ExitCode exit = ExitCode::ok;
  std::string message;     ///< one sentence if exit != ok
  Summary summary;         ///< summary of this device
  std::string state_file;  ///< path of the final agreed state (data_dir/final.state), if written
};

/// Runs one device from opening its stream to a clean exit, for `rivulet run`. Blocks; runs the agents on
/// their threads, HTTP and the watchdog. `stop` may be set from a signal handler.
RunResult run_device(const LoadedConfig& loaded, const RunOptions& options, StopRequest& stop);

}  // namespace rivulet::runtime
