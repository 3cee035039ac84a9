#pragma once
#include <cstddef>
#include <cstdint>

#include "core/clock.h"
#include "devices/optimizer.h"
#include "runtime/state/agreed_state.h"
#include "runtime/status/node_status.h"
#include "runtime/train/checkpoint_cycle.h"
#include "runtime/train/explosion_watch.h"
#include "runtime/train/guess_watch.h"
#include "runtime/train/local_model.h"
#include "runtime/train/retreat_notice.h"
#include "sync/message/facts.h"

namespace rivulet::runtime {

/// Whether the model is good or has diverged by this device's own rows, and what of its work would lead
/// nowhere: refused, not contributed. Owner: the train thread.
class ModelHealth {
 public:
  struct Parts {
    const Clock& clock;
    NodeStatus& status;
    const devices::OptimizerConfig& optimizer;
    GuessWatch::Targets targets = GuessWatch::Targets::classes;
    std::size_t classes = 0;     ///< labels that there are; 0: targets are any numbers
    bool classification = true;  ///< untrained, the loss is ln(classes)
  };
  explicit ModelHealth(const Parts& parts)
      : parts_(parts),
        explosions_(parts.classification ? parts.classes : 0),
        guess_(parts.targets, parts.classes),
        notice_(parts.clock, parts.status) {}

  /// The batch was computed: it is refused if a step at this rate would lead nowhere. The first `own` rows
  /// are this device's.
  void computed(LocalModel& model, const BatchView& batch, std::size_t own, const AgreedState& state,
                double learning_rate_factor);
  /// The delta that the model has prepared may be part of a sum.
  [[nodiscard]] bool accepts_delta(const LocalModel& model) {
    return model.movement_fits() && !explosions_.refuses_movement(model.movement_norm(), model.own());
  }
  /// N rows were used up for nothing.
  void refused(std::size_t rows) noexcept { guess_.refused(rows); }
  /// Others were contributed.
  void contributed() noexcept { guess_.taken(); }

  /// The group has agreed on rows with this loss.
  void agreed(double loss_sum, std::uint64_t rows) { explosions_.agreed(loss_sum, rows); }
  /// The norm of the agreed parameters.
  void stands_at(double norm) noexcept { explosions_.stands_at(norm); }
  /// After a round: another checkpoint may be on trial, and be on this device's disk by now.
  void follow_trial(const AgreedState& state, const CheckpointCycle& checkpoints);

  /// A view begins: the model may be another one.
  void begin_view() { guess_.begin(); }
  /// The group has gone back to another state.
  void went_back() {
    guess_.begin();
    explosions_ = ExplosionWatch(parts_.classes);
  }

  /// What it says to the group: flags of Facts.
  [[nodiscard]] std::uint32_t flags() const noexcept {
    return (guess_.diverged() ? sync::flag_diverged : 0U) | (guess_.sound() ? sync::flag_sound : 0U) |
           // A disk may have been too slow for a checkpoint. What few have could not be gone back to.
           (guess_.good() && trial_saved_ ? sync::flag_good : 0U);
  }

 private:
  const Parts parts_;
  ExplosionWatch explosions_;
  GuessWatch guess_;
  RetreatNotice notice_;
  Stamp on_trial_;            ///< the checkpoint that guess_ looks behind
  bool trial_saved_ = false;  ///< it is on this device's disk
};

}  // namespace rivulet::runtime
