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

/// rows/s of one device's stream, piecewise constant: (from second, rate), ascending.
using RateTrace = std::vector<std::pair<double, double>>;

/// Something that happens to one device at a time of the simulation (wiring/simulation_faults.h reads scripts
/// of them).
struct Fault {
  enum class Kind : std::uint8_t { kill, start, stop, link };
  double at_s = 0;
  Kind kind = Kind::kill;
  std::size_t device = 0;          ///< from 0
  sync::MemoryNetwork::Link link;  ///< of Kind::link
  std::string place = "--faults";  ///< file and line that asked for it
};

struct SimulateOptions {
  std::vector<RateTrace> rates;                  ///< one per device; fewer are repeated
  devices::DeviceProfile profile;                ///< compute cost of a device
  std::vector<devices::DeviceProfile> profiles;  ///< one per device; fewer are repeated; empty = `profile`
  sync::MemoryNetwork::Link link;                ///< latency and bandwidth between each two devices
  std::vector<sync::MemoryNetwork::Link> own_links;  ///< each device's own, shared by all it sends, and by
                                                     ///< all it receives; fewer are repeated; empty = none
  std::vector<Fault> faults;                         ///< in order of time
  bool timing_only = false;  ///< nothing is computed: gradients are zero, their bytes travel as they would
  std::string csv;           ///< folder for the tables of wiring/simulation_results.h; empty = none
  StopAfter stop_after;
  std::string data;  ///< data set to play; empty = synthetic rows of the configured shape
  stream::Order order = stream::Order::shuffled;
  int labels_per_device = 0;  ///< > 0: classes of the data set that each device sees
  std::string held_out;       ///< data set to measure accuracy on; empty = evaluate.held_out.path, or else
                              ///< data's test split if it has one
};

struct SimulateResult {
  ExitCode exit = ExitCode::ok;
  std::string message;
  Summary summary;
  double virtual_seconds = 0;
  double real_seconds = 0;
  std::uint64_t events = 0;
};

/// config.job.devices devices of the same configuration in one process under a virtual clock. Same seed, same
/// bytes. `progress(virtual seconds, summary so far)` about every virtual second. What the group did is in
/// the result and its tables also if it ended badly: a device's error, or a group that waits for ever
/// (failure). Errors, before anything runs: usage (check_scenario()), those of the configuration, io and
/// unavailable (data, folder of tables).
SimulateResult simulate(const LoadedConfig& loaded, const SimulateOptions& options,
                        const std::function<void(double, const Summary&)>& progress, StopRequest& stop);

}  // namespace rivulet::runtime
