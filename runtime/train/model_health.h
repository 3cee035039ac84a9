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

/// Judges on this device's own rows whether the model is good or has diverged, and rejects batches and deltas
/// that would ruin it. Owner: the train thread.
class ModelHealth {
 public:
  struct Parts {
    const Clock& clock;
    NodeStatus& status;
    const devices::OptimizerConfig& optimizer;
    GuessWatch::Targets targets = GuessWatch::Targets::classes;
    std::size_t classes = 0;     ///< number of labels; 0 for numeric targets
    bool classification = true;  ///< the loss of an untrained model is ln(classes)
  };
  explicit ModelHealth(const Parts& parts)
      : parts_(parts),
        explosions_(parts.classification ? parts.classes : 0),
        guess_(parts.targets, parts.classes),
        notice_(parts.clock, parts.status) {}

  /// Call when the batch was computed. Rejects it if a step at this learning rate would ruin the model. The
  /// first `own` rows are this device's.
  void computed(LocalModel& model, const BatchView& batch, std::size_t own, const AgreedState& state,
                double learning_rate_factor);
  /// True if the prepared delta may be part of a sum.
  [[nodiscard]] bool accepts_delta(const LocalModel& model) {
    return model.delta_fits() && !explosions_.rejects_delta(model.delta_norm(), model.own());
  }
  /// Call when `rows` rows were dropped by a rejection.
  void refused(std::size_t rows) noexcept { guess_.refused(rows); }
  /// Call when rows were contributed.
  void contributed() noexcept { guess_.taken(); }

  /// Call when the group has synchronized on rows with this loss.
  void agreed(double loss_sum, std::uint64_t rows) { explosions_.agreed(loss_sum, rows); }
  /// Sets the norm of the agreed parameters.
  void state_at(double norm) noexcept { explosions_.state_at(norm); }
  /// Call after a round: the checkpoint on trial may have changed, or may have reached this device's disk.
  void follow_trial(const AgreedState& state, const CheckpointCycle& checkpoints);

  /// Call at the start of a view: the model may have been replaced.
  void begin_view() { guess_.begin(); }
  /// Call when the group has rolled back to an earlier state.
  void rolled_back() {
    guess_.begin();
    explosions_ = ExplosionWatch(parts_.classes);
  }

  /// Returns the flags in Facts that report the result to the group.
  [[nodiscard]] std::uint32_t flags() const noexcept {
    return (guess_.diverged() ? sync::flag_diverged : 0U) | (guess_.sound() ? sync::flag_sound : 0U) |
           // A slow disk may miss the checkpoint. The group cannot roll back to a checkpoint that too few
           // devices have.
           (guess_.good() && trial_saved_ ? sync::flag_good : 0U);
  }

 private:
  const Parts parts_;
  ExplosionWatch explosions_;
  GuessWatch guess_;
  RetreatNotice notice_;
  Stamp on_trial_;            ///< the checkpoint that guess_ judges
  bool trial_saved_ = false;  ///< the checkpoint on trial is on this device's disk
};

}  // namespace rivulet::runtime
