#pragma once
#include <atomic>
#include <functional>
#include <string>

#include "core/result.h"
#include "core/time.h"

namespace rivulet::devices {

/// How long somebody else's code is waited for.
struct Patience {
  Duration deadline = std::chrono::seconds(30);
  const std::atomic<int>* stop = nullptr;  ///< above 0: not any more; null: nobody sets it
};

/// Does `body` in a process of its own, which is a copy of this one with the calling thread alone, and hands
/// back its answer: code that may never return, or end the process it runs in. Call it before there are
/// threads that hold what body needs. The process is gone when this returns, and dies with the caller.
/// SIGTERM, SIGINT and SIGHUP do not reach it. Errors: those of body; timed_out, cancelled; unavailable (no
/// process to be had, or the machine killed it); protocol (it ended in another way than by returning).
Result<std::string> apart(const std::function<Result<std::string>()>& body, const Patience& patience);

}  // namespace rivulet::devices
