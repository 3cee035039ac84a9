#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "core/clock.h"
#include "runtime/status/node_status.h"
#include "sync/message/plan.h"

namespace rivulet::runtime {

/// Shows in the status that the group has rolled back. The notice stays until rows have shown that the model
/// is good, and for at least some minutes, so that users see it. Owner: the train thread.
class RetreatNotice {
 public:
  RetreatNotice(const Clock& clock, NodeStatus& status) : clock_(clock), status_(status) {}
  /// Call after each round. `agreed`: memory of the controllers in the agreed state.
  void show(std::span<const sync::policy::ControllerMemory> agreed);

 private:
  const Clock& clock_;
  NodeStatus& status_;
  std::uint32_t tries_ = 0;
  TimePoint until_{};
  std::string rolled_back_to_;
  std::string shown_;
};

}  // namespace rivulet::runtime
