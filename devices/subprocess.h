#pragma once
#include <atomic>
#include <functional>
#include <string>

#include "core/result.h"
#include "core/time.h"

namespace rivulet::devices {

/// Deadline and cancellation of a subprocess.
struct Patience {
  Duration deadline = std::chrono::seconds(30);
  const std::atomic<int>* stop = nullptr;  ///< above 0: cancel; null: no cancellation
};

/// Runs `body` in a forked subprocess and returns its result, for code that may never return or may end its
/// process. The subprocess has only the calling thread: call this before other threads hold resources that
/// body needs. The subprocess has exited when this returns, and is killed if the caller dies. It ignores
/// SIGTERM, SIGINT and SIGHUP. Errors: those of body; timed_out, cancelled; unavailable (fork failed, or the
/// system killed the subprocess); protocol (it ended without returning).
Result<std::string> run_in_subprocess(const std::function<Result<std::string>()>& body,
                                      const Patience& patience);

}  // namespace rivulet::devices
