#pragma once
#include <cstdint>
#include <memory>
#include <optional>

#include "buffer/batch.h"
#include "core/clock.h"
#include "devices/device.h"
#include "devices/optimizer.h"
#include "devices/trainer.h"
#include "runtime/state/agreed_state.h"

namespace rivulet::runtime {

/// What this device computes by itself: the gradient of its batch, and steps of its own on a private copy of
/// the model while the group does not agree. Owner: the train thread.
class LocalModel {
 public:
  struct Parts {
    const Clock& clock;
    devices::Device& device;
    devices::Trainer& trainer;
    devices::OptimizerConfig optimizer;
  };
  /// Errors: unavailable (memory).
  static Result<std::unique_ptr<LocalModel>> create(const Parts& parts);

  /// Gradient of the batch on the private copy, or on the agreed model while there is none. Nothing is done
  /// for a batch that it has computed already, or that has no rows. Errors: the trainer's.
  Status compute(const BatchView& batch, const AgreedState& state);
  /// The batch is another one.
  void invalidate() noexcept { computed_ = false; }
  /// The batch is done with.
  void settle() noexcept {
    computed_ = false;
    finite_ = true;
  }
  /// Of the batch as it is: its loss and gradient are numbers.
  [[nodiscard]] bool finite() const noexcept { return finite_; }
  [[nodiscard]] const devices::StepReport& report() const noexcept { return report_; }
  [[nodiscard]] double compute_seconds() const noexcept { return compute_seconds_; }

  /// Contribution of this round, where the host can read it: the gradient [P + B].
  Status prepare_gradient();
  /// ... how far the private copy is from the agreed model, with its buffers: after one step more.
  Status prepare_delta(const AgreedState& state, std::size_t rows, double learning_rate_factor);
  [[nodiscard]] const GradientView& contribution() const noexcept { return mine_; }

  /// One step with the gradient on the private copy; the agreed state waits for the next aggregating round.
  Status step(const AgreedState& state, std::size_t rows, double learning_rate_factor);
  [[nodiscard]] std::uint32_t rows_since_sync() const noexcept { return rows_since_sync_; }
  /// Steps since the last agreement are in the sum, or go with the rows they came from.
  void drop_private_steps();

 private:
  explicit LocalModel(const Parts& parts) : parts_(parts) {}

  const Parts parts_;
  std::unique_ptr<devices::Memory> memory_;
  GradientView gradient_;  ///< [P + B] on the device
  GradientView mine_;      ///< host view of the contribution of this round
  std::optional<devices::ModelState> private_;
  std::uint64_t private_steps_ = 0;
  std::uint32_t rows_since_sync_ = 0;
  bool computed_ = false;  ///< gradient_ belongs to the batch as it is
  bool finite_ = true;
  devices::StepReport report_;
  double compute_seconds_ = 0;
};

}  // namespace rivulet::runtime
