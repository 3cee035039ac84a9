#pragma once
#include <string_view>

#include "core/time.h"

namespace rivulet::runtime {

struct Turn {
  int work = 0;                          ///< 0: nothing done, the runner may wait
  TimePoint wake_at = TimePoint::max();  ///< latest time of the next step
  bool finished = false;                 ///< no more steps
};

/// A loop body without the loop: bounded work, no sleep, no lock, no throw. Within a step only
/// RecordSource::poll may wait, for a few milliseconds at most.
class Agent {
 public:
  virtual ~Agent() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  virtual Turn step() = 0;
};

}  // namespace rivulet::runtime
