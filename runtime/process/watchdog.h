#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/time.h"

namespace rivulet::runtime {

/// Ends the process with ExitCode::watchdog, after writing the stacks of all its threads to stderr, when a
/// watched thread has not stepped for `deadline`. Own thread; looks four times per deadline, so it fires
/// within 1.25 of it. Stacks: a signal handler in every thread of /proc/self/task writes
/// backtrace_symbols_fd.
class Watchdog {
 public:
  struct Watched {
    std::string name;
    std::function<std::int64_t()> beat_ns;  ///< monotonic ns of its last sign of life; 0 = not started yet
  };
  explicit Watchdog(Duration deadline);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;
  void watch(Watched watched);
  void start();
  void stop();
  /// It looks, and found every watched thread alive when it did last: for who asks from outside whether this
  /// process lives. Any thread.
  [[nodiscard]] bool content() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::runtime
