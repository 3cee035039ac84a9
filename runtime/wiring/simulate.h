#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "devices/modeled_device.h"
#include "runtime/config/config.h"
#include "runtime/node/run.h"
#include "runtime/status/summary.h"
#include "stream/dataset.h"
#include "sync/transport/memory_transport.h"

namespace rivulet::runtime {

/// Rows/s of one device's stream, piecewise constant: (from second, rate), ascending.
using RateTrace = std::vector<std::pair<double, double>>;

/// A scheduled event of one device (wiring/simulation_faults.h parses scripts of them).
struct Fault {
  enum class Kind : std::uint8_t { kill, start, stop, link };
  double at_s = 0;
  Kind kind = Kind::kill;
  std::size_t device = 0;          ///< device number, from 0
  sync::MemoryNetwork::Link link;  ///< new link, for Kind::link
  std::string place = "--faults";  ///< script file and line
};

struct SimulateOptions {
  std::vector<RateTrace> rates;                  ///< one per device; a shorter list is repeated
  devices::DeviceProfile profile;                ///< compute cost of a device
  std::vector<devices::DeviceProfile> profiles;  ///< per device, repeated; empty = `profile`
  sync::MemoryNetwork::Link link;                ///< latency and bandwidth between each pair of devices
  std::vector<sync::MemoryNetwork::Link>
      own_links;              ///< per device, for everything it sends and receives; empty = none
  std::vector<Fault> faults;  ///< faults in order of time
  bool timing_only = false;   ///< computes no gradients: they are zero, but their bytes are sent as usual
  std::string csv;            ///< directory for the tables of wiring/simulation_results.h; empty = none
  StopAfter stop_after;
  std::string data;  ///< data set to replay; empty = synthetic rows of the configured shape
  stream::Order order = stream::Order::shuffled;
  int labels_per_device = 0;  ///< > 0: number of classes that each device sees
  std::string held_out;       ///< held-out data; empty = evaluate.held_out.path, else a test split
};

struct SimulateResult {
  ExitCode exit = ExitCode::ok;
  std::string message;
  Summary summary;
  double virtual_seconds = 0;
  double real_seconds = 0;
  std::uint64_t events = 0;
};

/// Simulates config.job.devices devices of one configuration in one process under a virtual clock. The same
/// seed gives the same bytes. Calls `progress(virtual seconds, summary so far)` about every virtual second.
/// Result and tables are also filled if the run fails, because of a device's error or because the group would
/// wait forever (exit code failure). Errors, before anything runs: usage (check_scenario()), those of the
/// configuration, io and unavailable (data, folder of tables).
SimulateResult simulate(const LoadedConfig& loaded, const SimulateOptions& options,
                        const std::function<void(double, const Summary&)>& progress, StopRequest& stop);

}  // namespace rivulet::runtime
