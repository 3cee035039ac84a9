#pragma once
#include <cstdint>

#include "runtime/process/stop.h"

namespace rivulet::runtime {

/// While this object exists, the first SIGTERM, SIGINT or SIGHUP (unless ignored, as under nohup) sets `stop`
/// to 1. A second one exits the process with code 1 from inside the handler, or sets `stop` to 2 if the
/// caller must stop child processes first. SIGPIPE is ignored, so that writing to a lost peer returns an
/// error code. After destruction, signals have no effect, since the program is exiting. Only one instance may
/// exist, since handlers are per process. Owner: the main thread.
class SignalHandlers {
 public:
  enum class Second : std::uint8_t { exits, raises };
  explicit SignalHandlers(StopRequest& stop, Second second = Second::exits);
  ~SignalHandlers();
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;
};

}  // namespace rivulet::runtime
