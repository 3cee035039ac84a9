#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "core/clock.h"
#include "core/wake.h"
#include "runtime/process/agent.h"

namespace rivulet::runtime {

/// Steps agents in one thread by an agenda of (time, agent). Sets the agent's own clock before each step. An
/// agent is due again at its wake_at, at the time of a notify(), or immediately if it reports work.
/// Deterministic: the same agents and seeds give the same order of steps.
class SimRunner {
 public:
  SimRunner();
  ~SimRunner();
  SimRunner(const SimRunner&) = delete;
  SimRunner& operator=(const SimRunner&) = delete;
  /// Creates the Wake of an agent before the agent exists, because agents take it at construction.
  Wake& make_wake();
  /// `wake` must come from make_wake(); `clock` belongs to this agent only.
  void add(Agent& agent, VirtualClock& clock, Wake& wake);
  /// Removes the agent of this wake, which may then be destroyed; later notifications are ignored.
  void remove(Wake& wake);
  /// Runs until done() or until no agent is due. Returns the number of steps.
  std::uint64_t run_until(const std::function<bool()>& done);
  [[nodiscard]] TimePoint now() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::runtime
