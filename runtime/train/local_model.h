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

/// What this device computes by itself: the gradient of its batch, and steps of its own on a private copy of
/// the model while the group does not agree. Owner: the train thread.
///
/// The copy starts from the agreed model (the reference) after each agreement; what the optimizer remembers
/// of the device's own steps stays with the device:
///
///   step, step, ... -> prepare_delta -> agreed (they are in the sum, or their rows are used up)
///                                    |  roll_back (their rows come again) | adopt (another state is the
///                                    reference)
///
/// or, where steps go on while the group agrees:
///
///   ... -> prepare_delta -> depart -> step, step -> agreed (the copy moves along with the reference)
///                                                |  roll_back (the rows of all steps come again)
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

  /// Gradient of the batch on the private copy, or on the agreed model while there is none. Nothing is done
  /// for a batch that it has computed already, or that has no rows. `counted`: of its rows, those that the
  /// report is of; loss and hits of all others are taken to be like theirs. Errors: the trainer's.
  Status compute(const BatchView& batch, std::size_t counted, const AgreedState& state);
  /// The batch is another one.
  void invalidate() noexcept { computed_ = false; }
  /// The batch is done with.
  void settle() noexcept {
    computed_ = false;
    finite_ = true;
  }
  [[nodiscard]] bool is_computed() const noexcept { return computed_; }
  /// Of the batch as it is: its loss and all of its gradient, buffers included, may be part of a sum.
  [[nodiscard]] bool finite() const noexcept { return finite_; }
  /// ... but it is not to be.
  void refuse() noexcept { finite_ = false; }
  [[nodiscard]] const devices::StepReport& report() const noexcept { return report_; }
  [[nodiscard]] double compute_seconds() const noexcept { return compute_seconds_; }

  /// Contribution of this round, where the host can read it: the gradient [P + B].
  Status prepare_gradient();
  /// ... is sketched, as a step of its own and as a movement.
  void sketch_gradient(const devices::ModelLayout& layout);
  /// ... how far the private copy has come from the agreed model, reference - copy, and its buffers.
  Status prepare_delta(const AgreedState& state);
  /// ... and no step was made since.
  [[nodiscard]] bool is_prepared() const noexcept { return delta_ready_; }
  /// The movement, buffers included, may be part of a sum; its norm.
  [[nodiscard]] bool movement_fits() const noexcept { return movement_fits_; }
  [[nodiscard]] double movement_norm() const noexcept { return movement_norm_; }
  [[nodiscard]] const GradientView& contribution() const noexcept { return mine_; }
  /// The movement has left: steps from here on are of the next one. One copy of the model and of what its
  /// optimizer remembers.
  void depart();
  /// ... and its agreement is under way.
  [[nodiscard]] bool departed() const noexcept { return parts_.intervals.in_flight.has_value(); }

  /// One step with the gradient on the private copy; the agreed state waits for the next agreement.
  Status step(const AgreedState& state, std::size_t rows, double learning_rate_factor);
  /// Of the last own step.
  [[nodiscard]] const devices::ApplyReport& applied() const noexcept { return applied_; }
  [[nodiscard]] OwnSteps& own() noexcept { return parts_.intervals.current.steps; }
  [[nodiscard]] const OwnSteps& own() const noexcept { return parts_.intervals.current.steps; }
  /// Own steps and movements are sketched, or not: one pass over each.
  void sketch(bool wanted) noexcept { sketching_ = wanted; }
  [[nodiscard]] const StepSketches& sketches() const noexcept { return sketches_; }

  /// The group has agreed, and `state` is what it led to; `applied`: with the steps since the last time.
  /// `left`: nothing, or [P], not 0 where the movement leaves no momentum behind. False: steps that were made
  /// since depart() are undone.
  bool agreed(const AgreedState& state, bool applied, const GradientView& left);
  /// The group has stepped with gradients: what the optimizer remembers is the group's from now on.
  void follow_group() noexcept {
    sketches_.begin();
    if (private_) forget_own();
    parts_.intervals.restart(parts_.clock.now());
  }
  /// The rows of the steps since the last agreement come again.
  void roll_back(const AgreedState& state);
  /// `state` has taken the place of the reference, which was at `before` with this row clock. It is what the
  /// prepared movement led to elsewhere, or has nothing to do with this device's own steps.
  void adopt(const AgreedState& state, const Stamp& before, std::uint64_t rows_before,
             const GradientView& left);

  /// For replays: the copy stands where it was at a depart(), for the steps that were made from there; then
  /// it moves along with the reference as agreed() had it.
  void go_back(const ModelPoint& departure);
  void go_on(const AgreedState& state);

  /// The private copy is made, if there is none. Errors: unavailable (memory).
  Status make_private(const AgreedState& state);
  /// What the optimizer remembers of own steps, as the last agreement left it; nothing: it has made none.
  [[nodiscard]] std::vector<std::span<const std::byte>> kept() const;
  [[nodiscard]] std::uint64_t kept_steps() const noexcept { return behind_agreement().steps; }
  [[nodiscard]] double kept_norm() const noexcept { return behind_agreement().known.usual_norm; }
  /// A gradient that is longer is made as long, by the next own step; 0: any is right.
  [[nodiscard]] double longest_gradient(const AgreedState& state) const {
    return devices::longest_gradient(parts_.optimizer, (private_ ? *private_ : state.model).statistics());
  }
  /// 0 if there is nothing.
  [[nodiscard]] std::uint64_t kept_digest() const;
  /// ... as it was saved beside the agreed state that this process begins with. Errors: unavailable (memory).
  Status begin_with(const PrivatePart& part, const AgreedState& state);

 private:
  explicit LocalModel(const Parts& parts) : parts_(parts) {}
  Result<bool> gradient_fits();
  void count_part(double part);
  [[nodiscard]] const ModelPoint& behind_agreement() const noexcept {
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
  GradientView gradient_;                             ///< [P + B] on the device
  std::unique_ptr<devices::Memory> movement_memory_;  ///< null: no own step was made yet
  GradientView mine_;                                 ///< host view of the contribution of this round
  std::optional<devices::ModelState> private_;
  std::uint64_t private_steps_ = 0;  ///< on it, since it was made
  StepSketches sketches_;
  bool sketching_ = false;
  bool movement_fits_ = true;
  double movement_norm_ = 0;
  bool delta_ready_ = false;  ///< mine_ is their movement
  bool computed_ = false;     ///< gradient_ belongs to the batch as it is
  bool finite_ = true;
  devices::StepReport report_;
  std::size_t computed_rows_ = 0;  ///< of the batch, those included that are not counted
  double hits_owed_ = 0;           ///< parts of hits that batches before were too small for
  devices::ApplyReport applied_;
  double compute_seconds_ = 0;
};

}  // namespace rivulet::runtime
