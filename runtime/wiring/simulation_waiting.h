#pragma once
#include <optional>
#include <string>

#include "runtime/wiring/simulate.h"
#include "runtime/wiring/simulation.h"

namespace rivulet::runtime {

/// Detects that a simulated group waits for an event that its scenario lacks: the restart of a device that
/// was killed or has left, rows of streams that stay silent, or messages slower than the deadline. A real
/// group may wait forever; with a virtual clock the simulation would never end. Owner: one thread.
class WaitingWatch {
 public:
  /// `options` must outlive it. `deadline`: sync.deadline of the group.
  WaitingWatch(const SimulateOptions& options, Duration deadline);
  /// Returns why nothing more will be trained, as a sentence; nullopt while training is possible. Called
  /// periodically. Cost: a few memory reads per device.
  std::optional<std::string> look(SimulatedGroup& group);

 private:
  [[nodiscard]] std::string forming_text(SimulatedGroup& group) const;

  const double patience_s_;
  double last_news_s_ = 0;  ///< last event of the script or change of a stream
  bool streams_end_ = true;
  double since_s_ = 0;  ///< start of the time in which the group only waits
  std::uint64_t step_ = 0;
  double step_since_s_ = 0;  ///< start of the time without a step
  double forming_at_s_ = 0;  ///< when a device was last seen forming
};

}  // namespace rivulet::runtime
