#pragma once
#include "core/time.h"

namespace rivulet {

/// Notifies an agent that there is work: rows arrived, an exchange finished, a signal came.
/// notify() may be called from any thread, never waits, and is cheap when nobody sleeps.
class Wake {
 public:
  virtual ~Wake() = default;
  virtual void notify() noexcept = 0;
  /// Somebody knows already that there will be work at `at` (a message in flight). Real wires cannot
  /// know, so the default ignores it.
  virtual void notify_at(TimePoint at) noexcept { static_cast<void>(at); }
};

}  // namespace rivulet
