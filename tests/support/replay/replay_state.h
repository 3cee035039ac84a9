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

/// The agreed state of a replay, and copies of it at those steps from which later views resume: a view that
/// is lost in its last round, or a group that restarts from a checkpoint, begins with an older state than the
/// log's last. As many copies as there are such steps ahead.
class ReplayState {
 public:
  /// Where a view of the log begins.
  struct Start {
    std::uint64_t step = 0;
    /// The group was to go back to this state before; it may have come to begin with another one.
    std::optional<std::uint64_t> back;
  };
  /// `starts`: of the views of the log, in order.
  ReplayState(AgreedState first, std::vector<Start> starts, const ReplayModels::Parts& models)
      : now_(std::move(first)), models_(models), starts_(std::move(starts)), device_(models.device) {}
  AgreedState& now() noexcept { return now_; }
  /// What each device keeps for itself beside it, by device id.
  std::map<std::string, sync::Residual>& residuals() noexcept { return residuals_; }
  /// The state has made a step, and saw these columns before: what was not sent yet follows.
  void rewrite_residuals(std::span<const devices::Column> before);
  ReplayModels& models() noexcept { return models_; }
  [[nodiscard]] std::uint64_t step() const noexcept { return now_.stamp.step; }
  /// Before a round: keeps what a later view begins with. Errors: unavailable (memory).
  Status keep_if_needed();
  /// The next view of the log begins, at `step`. False: no state of that step is known. Errors: unavailable
  /// (memory), bad_record (the group has gone back to a state that was not kept).
  Result<bool> enter_next(std::uint64_t step);
  /// The group leaves this view to go back to a state that was good. Whether anybody still had it shows where
  /// the next view begins.
  void leave_for(const Stamp& to, std::uint64_t view,
                 std::vector<sync::policy::ControllerMemory> remembered) {
    retreat_ = Retreat{to, view, std::move(remembered)};
  }
  [[nodiscard]] Result<Digest> digest() const { return digest_of(now_, device_); }

 private:
  struct Retreat {
    Stamp to;
    std::uint64_t view = 0;  ///< that was left
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
