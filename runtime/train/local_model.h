#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "buffer/batch.h"
#include "core/clock.h"
#include "core/digest.h"
#include "devices/columns.h"
#include "devices/device.h"
#include "devices/optimizer.h"
#include "devices/trainer.h"
#include "runtime/checkpoint/private_part.h"
#include "runtime/state/agreed_state.h"
#include "runtime/train/local_interval.h"
#include "runtime/train/step_sketches.h"

namespace rivulet::runtime {

/// The local work of a device: the gradient of its batch, and local steps on a private copy of the model
/// between synchronizations. Owner: the train thread.
///
/// The copy starts from the agreed model (the reference) after each synchronization. The optimizer's memory
/// of local steps stays on the device:
///
///   step, step, ... -> prepare_delta -> agreed (the steps are in the sum, or their rows are dropped)
///                                    |  roll_back (their rows are read again)
///                                    |  adopt (another state becomes the reference)
///
/// or, if local steps continue during the synchronization:
///
///   ... -> prepare_delta -> depart -> step, step -> agreed (the copy follows the reference)
///                                                |  roll_back (the rows of all steps are read again)
class LocalModel {
 public:
  struct Parts {
    const Clock& clock;
    devices::Device& device;
    devices::Trainer& trainer;
    devices::OptimizerConfig optimizer;
    LocalIntervals& intervals;
  };
  /// Errors: unavailable (memory).
  static Result<std::unique_ptr<LocalModel>> create(const Parts& parts);

  /// Computes the gradient of the batch on the private copy, or on the agreed model if there is no copy. Does
  /// nothing for an empty batch or one that is already computed. `counted`: number of rows that the report
  /// covers; they get their share of the batch's loss and hits. Errors: the trainer's.
  Status compute(const BatchView& batch, std::size_t counted, const AgreedState& state);
  /// Call when the batch has changed.
  void invalidate() noexcept { computed_ = false; }
  /// Call when the batch is finished.
  void release() noexcept {
    computed_ = false;
    finite_ = true;
  }
  [[nodiscard]] bool is_computed() const noexcept { return computed_; }
  /// True if the loss and the whole gradient, including buffers, may be part of a sum.
  [[nodiscard]] bool finite() const noexcept { return finite_; }
  /// Excludes the batch from sums.
  void refuse() noexcept { finite_ = false; }
  [[nodiscard]] const devices::StepReport& report() const noexcept { return report_; }
  [[nodiscard]] double compute_seconds() const noexcept { return compute_seconds_; }

  /// Makes the gradient [P + B] this round's contribution, in host memory.
  Status prepare_gradient();
  /// Adds the gradient to the sketches, both as a local step and as a delta.
  void sketch_gradient(const devices::ModelLayout& layout);
  /// Makes the delta (reference - private copy) and the copy's buffers this round's contribution.
  Status prepare_delta(const AgreedState& state);
  /// True if no step was made since the delta was prepared.
  [[nodiscard]] bool is_prepared() const noexcept { return delta_ready_; }
  /// True if the delta, including buffers, may be part of a sum.
  [[nodiscard]] bool delta_fits() const noexcept { return delta_fits_; }
  [[nodiscard]] double delta_norm() const noexcept { return delta_norm_; }
  [[nodiscard]] const GradientView& contribution() const noexcept { return mine_; }
  /// Call when the delta has been sent: the next steps belong to the next delta. Cost: a copy of the model
  /// and of the optimizer's arrays.
  void depart();
  /// True while the synchronization of a departed delta is under way.
  [[nodiscard]] bool departed() const noexcept { return parts_.intervals.in_flight.has_value(); }

  /// Makes one step with the gradient on the private copy. The agreed state only changes when synchronizing.
  Status step(const AgreedState& state, std::size_t rows, double learning_rate_factor);
  /// Returns the report of the last local step.
  [[nodiscard]] const devices::ApplyReport& applied() const noexcept { return applied_; }
  [[nodiscard]] LocalSteps& own() noexcept { return parts_.intervals.current.steps; }
  [[nodiscard]] const LocalSteps& own() const noexcept { return parts_.intervals.current.steps; }
  /// Turns sketches of local steps and deltas on or off. Cost: one pass over each gradient and each delta.
  void sketch(bool wanted) noexcept { sketching_ = wanted; }
  [[nodiscard]] const StepSketches& sketches() const noexcept { return sketches_; }

  /// Call when the group has synchronized; `state` is the result. `applied`: `state` includes the steps of
  /// the oldest interval. `left`: empty, or [P] with nonzero elements where the delta leaves no momentum.
  /// Returns false if steps since depart() were undone.
  bool agreed(const AgreedState& state, bool applied, const GradientView& left);
  /// Call when the group has made a step with gradients: from now on, the optimizer's memory is the group's.
  void follow_group() noexcept {
    sketches_.begin();
    if (private_) forget_own();
    parts_.intervals.restart(parts_.clock.now());
  }
  /// Undoes all local steps since the last synchronization; their rows are read again.
  void roll_back(const AgreedState& state);
  /// Call when `state` has replaced the reference, whose stamp and row count were `before` and `rows_before`.
  /// `state` either includes the prepared delta, or is unrelated to this device's local steps.
  void adopt(const AgreedState& state, const Stamp& before, std::uint64_t rows_before,
             const GradientView& left);

  /// For replays: restores the copy to its state at a depart(), so that the steps made from there can be
  /// repeated. resume() then applies the change of the reference, as agreed() did.
  void return_to(const ModelPoint& departure);
  void resume(const AgreedState& state);

  /// Makes the private copy if there is none. Errors: unavailable (memory).
  Status make_private(const AgreedState& state);
  /// Returns the optimizer arrays of the local steps, as of the last synchronization; empty if there were no
  /// steps.
  [[nodiscard]] std::vector<std::span<const std::byte>> kept() const;
  [[nodiscard]] std::uint64_t kept_steps() const noexcept { return last_synchronized().steps; }
  [[nodiscard]] double kept_norm() const noexcept { return last_synchronized().known.usual_norm; }
  /// Returns the norm to which the next local step clips its gradient; 0 if there is no limit.
  [[nodiscard]] double longest_gradient(const AgreedState& state) const {
    return devices::longest_gradient(parts_.optimizer, (private_ ? *private_ : state.model).statistics());
  }
  /// Returns a digest of kept(), kept_steps() and kept_norm(); 0 without a private copy.
  [[nodiscard]] std::uint64_t kept_digest() const;
  /// Restores arrays saved with the agreed state that this process starts from. Errors: unavailable (memory).
  Status begin_with(const PrivatePart& part, const AgreedState& state);

 private:
  explicit LocalModel(const Parts& parts) : parts_(parts) {}
  Result<bool> gradient_fits();
  void count_part(double part);
  [[nodiscard]] const ModelPoint& last_synchronized() const noexcept {
    return parts_.intervals.oldest().start;
  }
  [[nodiscard]] ModelPoint point() const;
  void recall(const ModelPoint& from);
  void bring_to(const devices::Statistics& known, ModelPoint& point) const;
  void see(const devices::Statistics& known);
  void move_along(const AgreedState& state);
  void start_from(const AgreedState& state);
  void forget() noexcept;
  void forget_own() noexcept;

  const Parts parts_;
  std::unique_ptr<devices::Memory> memory_;
  GradientView gradient_;                          ///< [P + B] on the device
  std::unique_ptr<devices::Memory> delta_memory_;  ///< null before the first delta
  GradientView mine_;                              ///< host view of this round's contribution
  std::optional<devices::ModelState> private_;
  std::uint64_t private_steps_ = 0;  ///< number of steps made on the private copy
  StepSketches sketches_;
  bool sketching_ = false;
  bool delta_fits_ = true;
  double delta_norm_ = 0;
  bool delta_ready_ = false;  ///< mine_ is the current delta
  bool computed_ = false;     ///< gradient_ belongs to the current batch
  bool finite_ = true;
  devices::StepReport report_;
  std::size_t computed_rows_ = 0;  ///< all rows of the batch, including those not counted
  double hits_owed_ = 0;           ///< fractions of hits carried over
  devices::ApplyReport applied_;
  double compute_seconds_ = 0;
};

}  // namespace rivulet::runtime
