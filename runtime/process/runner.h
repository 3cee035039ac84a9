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

/// One thread for one agent: step; while work is 0, sleep until wake_at, notify(), or 1 ms .. 20 ms of
/// back-off at most. Also the agent's Wake. Owner: the thread that calls start() and join().
class ThreadRunner final : public Wake {
 public:
  ThreadRunner();
  ~ThreadRunner() override;
  ThreadRunner(const ThreadRunner&) = delete;
  ThreadRunner& operator=(const ThreadRunner&) = delete;
  /// The thread gets the agent's name. `clock` must be the machine's.
  void start(Agent& agent, const Clock& clock);
  void notify() noexcept override;
  /// True once the agent has returned finished.
  [[nodiscard]] bool finished() const noexcept;
  /// The agent is not stepped again after the step it is in; join() then returns.
  void stop() noexcept;
  void join();
  /// When step() was last entered, for the watchdog; ns on `clock`'s line. 0 before the start and after the
  /// end.
  [[nodiscard]] std::int64_t beat_ns() const noexcept;
  /// Kernel thread id, 0 before start.
  [[nodiscard]] int tid() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::runtime
