#pragma once
#include <optional>
#include <string>

#include "runtime/wiring/simulate.h"
#include "runtime/wiring/simulation.h"

namespace rivulet::runtime {

/// Detects that a simulated group waits for something that its scenario never brings: a device that was
/// killed or has left and is not started again, rows of streams that are silent from there on, or messages
/// that take longer than the deadline. A real group waits for as long as it takes; a clock that jumps would
/// jump for ever. Owner: one thread.
class WaitingWatch {
 public:
  /// `options` must outlive it. `deadline`: sync.deadline of the group.
  WaitingWatch(const SimulateOptions& options, Duration deadline);
  /// Why nothing will be trained any more, for a person; nullopt: something may. Asked now and then. Cost: a
  /// few loads for each device.
  std::optional<std::string> look(SimulatedGroup& group);

 private:
  [[nodiscard]] std::string forming_text(SimulatedGroup& group) const;

  const double patience_s_;
  double last_news_s_ = 0;  ///< of the script and of the streams
  bool streams_end_ = true;
  double since_s_ = 0;  ///< the group has done nothing but wait from there on
  std::uint64_t step_ = 0;
  double step_since_s_ = 0;  ///< there has been no step from there on
  double forming_at_s_ = 0;  ///< somebody formed, most lately
};

}  // namespace rivulet::runtime
