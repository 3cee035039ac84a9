#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "core/clock.h"
#include "core/wake.h"
#include "runtime/process/agent.h"

namespace rivulet::runtime {

/// One thread, an agenda of (time, agent). Sets the agent's own clock, steps it, asks again at
/// wake_at, at a notify()'s time, or at once while it reports that it worked. Same agents and seeds, same
/// order, always.
class SimRunner {
 public:
  SimRunner();
  ~SimRunner();
  SimRunner(const SimRunner&) = delete;
  SimRunner& operator=(const SimRunner&) = delete;
  /// Creates the Wake of an agent before the agent exists (agents take their Wake at construction).
  Wake& make_wake();
  /// `wake` must be one of make_wake()'s; `clock` is this agent's alone.
  void add(Agent& agent, VirtualClock& clock, Wake& wake);
  /// The agent of this wake is not stepped again and may be destroyed; later notifications are ignored.
  void remove(Wake& wake);
  /// Until done() or no agent has anything left to do. Returns the number of steps made.
  std::uint64_t run_until(const std::function<bool()>& done);
  [[nodiscard]] TimePoint now() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::runtime
