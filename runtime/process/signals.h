#pragma once
#include <cstdint>

#include "runtime/process/stop.h"

namespace rivulet::runtime {

/// While it lives, the first SIGTERM, SIGINT or (unless it is ignored, as under nohup) SIGHUP raises `stop`
/// to 1. A later one means now: the process exits with 1 inside the handler, whatever its threads are doing,
/// or, where somebody has children to end first, raises `stop` to 2. SIGPIPE is ignored, so that a peer that
/// goes away is an error code and not the end of the process. Behind its life signals do nothing: the program
/// is ending. One at a time: a process has one set of
/// handlers. Owner: the main thread.
class SignalHandlers {
 public:
  enum class Second : std::uint8_t { exits, raises };
  explicit SignalHandlers(StopRequest& stop, Second second = Second::exits);
  ~SignalHandlers();
  SignalHandlers(const SignalHandlers&) = delete;
  SignalHandlers& operator=(const SignalHandlers&) = delete;
};

}  // namespace rivulet::runtime
