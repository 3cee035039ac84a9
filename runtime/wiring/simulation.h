#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/node/catalog.h"
#include "runtime/node/node.h"
#include "runtime/wiring/sim_runner.h"
#include "runtime/wiring/simulate.h"

namespace rivulet::runtime {

/// A test's replacements for the default dependencies of simulated nodes.
struct SimulatedParts {
  Catalog catalog = builtin_catalog();
  /// Source of device i; null function = as in SimulateOptions.
  std::function<std::unique_ptr<stream::RecordSource>(std::size_t device, const Clock& clock)> source;
  /// Device i; null function = modeled by the profile.
  std::function<std::unique_ptr<devices::Device>(std::size_t device, VirtualClock& clock)> device;
  /// Transport of device i, replacing the usual one; null function = the usual one.
  std::function<sync::Connect(std::size_t device, sync::Connect usual)> wires;
  /// Disables sharing: every device sends a message to each peer and computes its own results, as real
  /// devices do. The results are the same, but there are N messages in place of one.
  bool separate = false;
  /// A value above 0 cancels the trial of a model with custom code; nullptr = never.
  const StopRequest* stop = nullptr;
  std::uint32_t check_every = 16'381;  ///< uses of a shared result between checks, see ShareCheck
  /// Decision log of device i; null function = none.
  std::function<std::unique_ptr<DecisionLog>(std::size_t device)> decisions;
  /// Metrics sink of device i; null function = none.
  std::function<MetricsSink&(std::size_t device)> metrics;
};

/// N nodes of one configuration under virtual clocks in one process. Owner: one thread.
class SimulatedGroup {
 public:
  /// Errors: those of Node::build, io (data set).
  static Result<std::unique_ptr<SimulatedGroup>> build(const LoadedConfig& loaded,
                                                       const SimulateOptions& options, SimulatedParts parts);
  ~SimulatedGroup();
  SimulatedGroup(const SimulatedGroup&) = delete;
  SimulatedGroup& operator=(const SimulatedGroup&) = delete;

  [[nodiscard]] std::size_t size() const noexcept;
  Node& node(std::size_t device);
  sync::MemoryNetwork& network();
  /// Runs until every worker has finished or done() is true. Returns the number of steps.
  std::uint64_t run_until(const std::function<bool()>& done);
  [[nodiscard]] bool all_ended() const;
  [[nodiscard]] double seconds() const;  ///< virtual
  /// Whether the device was killed by a fault and not restarted.
  [[nodiscard]] bool killed(std::size_t device) const;
  /// Returns the first device that was not killed; its state stands for the group's.
  [[nodiscard]] std::size_t witness() const;
  /// Requests one device to leave, as SIGTERM would.
  void request_leave(std::size_t device);
  [[nodiscard]] Summary summary();

 private:
  struct State;
  explicit SimulatedGroup(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::runtime
