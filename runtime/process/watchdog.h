#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/time.h"

namespace rivulet::runtime {

/// Exits with ExitCode::watchdog when a watched thread has not stepped for `deadline`, after writing the
/// stacks of all threads to stderr. Its own thread checks four times per deadline, so it fires within 1.25
/// deadlines. A signal handler in each thread of /proc/self/task writes that thread's stack with
/// backtrace_symbols_fd.
class Watchdog {
 public:
  struct Watched {
    std::string name;
    std::function<std::int64_t()> beat_ns;  ///< monotonic time of the thread's last step; 0 = not started
  };
  explicit Watchdog(Duration deadline);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  void watch(Watched watched);
  void start();
  void stop();
  /// True if the watchdog runs and its last check found no stalled thread. For liveness probes. May be called
  /// from any thread.
  [[nodiscard]] bool content() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::runtime
