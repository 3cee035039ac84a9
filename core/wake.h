#pragma once
#include "core/time.h"

namespace rivulet {

/// Notifies an agent of work: rows arrived, an exchange finished, or a signal arrived. notify() may be called
/// from any thread, never waits, and is cheap if the agent is not sleeping.
class Wake {
 public:
  virtual ~Wake() = default;
  virtual void notify() noexcept = 0;
  /// Announces work at the future time `at` (a message in flight). Only a network in one process can predict
  /// it, so the default does nothing.
  virtual void notify_at(TimePoint at) noexcept { static_cast<void>(at); }
};

}  // namespace rivulet
