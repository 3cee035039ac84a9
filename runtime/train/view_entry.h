#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/wake.h"
#include "devices/device.h"
#include "devices/model_state.h"
#include "runtime/process/agent.h"
#include "runtime/process/log.h"
#include "runtime/state/state_handle.h"
#include "runtime/state/state_image.h"
#include "runtime/status/node_status.h"
#include "runtime/train/checkpoint_cycle.h"
#include "runtime/train/local_model.h"
#include "runtime/train/round_rows.h"
#include "runtime/train/state_copy.h"
#include "runtime/train/train_metrics.h"
#include "runtime/train/view.h"
#include "sync/membership/membership.h"
#include "sync/residual/residual.h"

namespace rivulet::runtime {

/// Joins words for a message; shortens long lists.
std::string listed(const std::vector<std::string>& words);

/// The members of a view that an error blames: accused of a wrong state or message, otherwise lost.
sync::membership::Departure departure_after(const Error& error, const sync::ViewSpec& spec);

/// Enters a view: the group forms, the devices connect, and all of them adopt the view's target. If that
/// fails, the next view is formed. Owner: the train thread.
///
///   forming -> connecting -> adopting -> entered
class ViewEntry {
 public:
  struct Parts {
    const Clock& clock;
    Wake& wake;  ///< wake of the train agent
    sync::membership::Membership& membership;
    const sync::Connect& connect;
    StateHandle& state;
    RoundRows& rows;
    LocalModel& model;
    sync::Residual& residual;
    CheckpointCycle& checkpoints;
    StateCopy* copy;  ///< null: no copies
    devices::Device& device;
    const devices::ModelLayout& layout;
    const StateOwner& owner;
    Duration peer_deadline;
    NodeStatus& status;
    TrainMetrics& metrics;
    Logger& log;
  };
  explicit ViewEntry(const Parts& parts) : parts_(parts) {}

  enum class Stage : std::uint8_t { forming, connecting, adopting };
  [[nodiscard]] Stage stage() const noexcept { return stage_; }

  /// Result of a step: a turn, the view that was entered, or an error that stops the device.
  struct Outcome {
    Turn turn;
    std::unique_ptr<View> entered;
    std::optional<Error> error;
  };
  /// `was_in_group`: this process has been in a view, so unreachable brokers and addresses are expected to
  /// become reachable again.
  Outcome step(bool was_in_group);
  /// Starts again with a new view. `why`, `members`: for the group's log.
  void restart(const std::string& why, const sync::membership::Departure& members = {});
  void drop_view() {
    view_.reset();
    stage_ = Stage::forming;
  }
  /// Puts stamp and digest of the state into the next READY. Errors: the device's.
  Status announce_state();
  /// Between views: replaces the state by the one that the group rolls back to. Errors: the device's.
  Status roll_back(AgreedState to) { return start_at(std::move(to)); }

 private:
  Outcome form(bool was_in_group);
  Status copy_state();
  Outcome connect();
  Outcome adopt();
  Outcome not_connected(Error error);
  Outcome not_adopted(Error error);
  void report_waiting(TimePoint now);
  [[nodiscard]] Duration adoption_patience() const;
  void confirm();
  Status replace_state(std::span<const std::byte> image);
  Status start_at(AgreedState target);
  [[nodiscard]] Outcome later(Duration d) const { return {.turn = {.wake_at = parts_.clock.now() + d}}; }
  [[nodiscard]] static Outcome again() { return {.turn = {.work = 1}}; }
  [[nodiscard]] static Outcome ends(Error error) { return {.error = std::move(error)}; }

  const Parts parts_;
  Stage stage_ = Stage::forming;
  std::unique_ptr<View> view_;
  TimePoint form_again_at_{};
  Duration forming_pause_{};
  TimePoint report_again_at_{};
};

}  // namespace rivulet::runtime
