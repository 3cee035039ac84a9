#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/config/config.h"
#include "runtime/exit_code.h"
#include "runtime/summary.h"

namespace rivulet::runtime {

/// When the whole group ends by itself: agreed, so that all devices end in the same round with 0.
struct StopAfter {
  std::uint64_t rows = 0;    ///< rows trained by the group since this process entered it; 0 = no limit
  std::uint64_t rounds = 0;  ///< applied rounds since then
  double seconds = 0;        ///< since then
};
/// "rows=60000" | "rounds=200" | "seconds=35". Errors: usage.
Result<StopAfter> parse_stop_after(const std::string& text);

struct RunOptions {
  StopAfter stop_after;
  bool dry_run = false;
  bool new_run = false;  ///< start over: the group begins a new run, old checkpoints are kept aside
};

/// Set by signal handlers: 0 = go on, 1 = finish the round and leave, 2 = now.
using StopRequest = std::atomic<int>;

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
