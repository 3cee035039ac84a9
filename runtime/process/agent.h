#pragma once
#include <string_view>

#include "core/time.h"

namespace rivulet::runtime {

struct Turn {
  int work = 0;                          ///< amount of work done; after 0, the runner may wait
  TimePoint wake_at = TimePoint::max();  ///< latest time of the next step
  bool finished = false;                 ///< no more steps
};

/// A loop body without the loop: a step does bounded work and does not sleep, lock or throw. Only
/// RecordSource::poll may wait within a step, for a few milliseconds.
class Agent {
 public:
  virtual ~Agent() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  virtual Turn step() = 0;
};

}  // namespace rivulet::runtime
