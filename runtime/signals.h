#pragma once
#include "runtime/run.h"

namespace rivulet::runtime {

/// While it lives, SIGTERM and SIGINT raise `stop`: the first to 1, any later one to 2. SIGPIPE is ignored,
/// so that a peer that goes away is an error code and not the end of the process. One at a time: a process
/// has one set of handlers. Owner: the main thread.
class SignalHandlers {
 public:
  explicit SignalHandlers(StopRequest& stop);
  ~SignalHandlers();
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;
};

}  // namespace rivulet::runtime
