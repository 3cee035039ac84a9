#pragma once
#include <string_view>

#include "core/time.h"

namespace rivulet::runtime {

struct Turn {
  int work = 0;                          ///< 0: nothing done, the runner may wait
  TimePoint wake_at = TimePoint::max();  ///< ask again no later than this
  bool finished = false;                 ///< do not ask again
};

/// A loop body without the loop: bounded work, no sleep, no lock, no throw. RecordSource::poll is the one
/// call inside a step that may wait, for at most a few milliseconds.
class Agent {
 public:
  virtual ~Agent() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  virtual Turn step() = 0;
};

}  // namespace rivulet::runtime
