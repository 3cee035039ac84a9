#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "devices/device.h"
#include "runtime/state/agreed_state.h"
#include "sync/residual/residual.h"
#include "tests/support/replay/replay_models.h"

namespace rivulet::runtime {

/// The agreed state of a replay, with copies at the steps from which later views resume. A view lost in its
/// last round, or a group that restarts from a checkpoint, begins with an older state than the log's last.
/// There is one copy for each such later step.
class ReplayState {
 public:
  /// Start of a view of the log.
  struct Start {
    std::uint64_t step = 0;
    /// The group decided to roll back to this step before; the view may begin with another state.
    std::optional<std::uint64_t> back;
  };
  /// `starts`: of the views of the log, in order.
  ReplayState(AgreedState first, std::vector<Start> starts, const ReplayModels::Parts& models)
      : now_(std::move(first)), models_(models), starts_(std::move(starts)), device_(models.device) {}
  AgreedState& now() noexcept { return now_; }
  /// Residual of each device, by id.
  std::map<std::string, sync::Residual>& residuals() noexcept { return residuals_; }
  /// Rewrites residuals after a step that changed the columns. `before`: columns before the step.
  void rewrite_residuals(std::span<const devices::Column> before);
  ReplayModels& models() noexcept { return models_; }
  [[nodiscard]] std::uint64_t step() const noexcept { return now_.stamp.step; }
  /// Before a round: copies the state if a later view begins with it. Errors: unavailable (memory).
  Status keep_if_needed();
  /// Enters the next view of the log, at `step`. False: the state of that step is unknown. Errors:
  /// unavailable (memory), bad_record (the group rolled back to a state without a copy).
  Result<bool> enter_next(std::uint64_t step);
  /// The group leaves this view to roll back to a good state. The start of the next view shows whether a
  /// device still had it.
  void leave_for(const Stamp& to, std::uint64_t view,
                 std::vector<sync::policy::ControllerMemory> remembered) {
    retreat_ = Retreat{to, view, std::move(remembered)};
  }
  [[nodiscard]] Result<Digest> digest() const { return digest_of(now_, device_); }

 private:
  struct Retreat {
    Stamp to;
    std::uint64_t view = 0;  ///< the view left
    std::vector<sync::policy::ControllerMemory> remembered;
  };
  [[nodiscard]] bool needed(std::uint64_t step) const;
  Status roll_back(const Retreat& retreat, std::uint64_t step);

  struct Copy {
    AgreedState state;
    std::map<std::string, sync::Residual> residuals;
    ReplayModels::Kept models;
  };
  AgreedState now_;
  std::map<std::string, sync::Residual> residuals_;
  ReplayModels models_;
  const std::vector<Start> starts_;
  std::size_t entered_ = 0;
  devices::Device& device_;
  std::map<std::uint64_t, Copy> kept_;  ///< by step
  std::optional<Retreat> retreat_;
};

}  // namespace rivulet::runtime
