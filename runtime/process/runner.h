#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/wake.h"
#include "runtime/process/agent.h"

namespace rivulet::runtime {

/// Runs one agent in one thread. After a step without work, it sleeps until wake_at or notify(), but no
/// longer than a back-off of 1 ms to 20 ms. It is also the agent's Wake. Owner: the thread that calls start()
/// and join().
class ThreadRunner final : public Wake {
 public:
  ThreadRunner();
  ~ThreadRunner() override;
  ThreadRunner(const ThreadRunner&) = delete;
  ThreadRunner& operator=(const ThreadRunner&) = delete;
  /// Names the thread after the agent. `clock` must be the real clock.
  void start(Agent& agent, const Clock& clock);
  void notify() noexcept override;
  /// True once the agent has returned a Turn with `finished` set.
  [[nodiscard]] bool finished() const noexcept;
  /// Prevents further steps; join() returns after the current one.
  void stop() noexcept;
  void join();
  /// Returns the time of the last step() call on `clock` in ns, for the watchdog; 0 before the start and
  /// after the end.
  [[nodiscard]] std::int64_t beat_ns() const noexcept;
  /// Returns the kernel thread id; 0 before start().
  [[nodiscard]] int tid() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::runtime
