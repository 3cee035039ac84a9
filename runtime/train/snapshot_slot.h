#pragma once
#include <atomic>
#include <cstdint>
#include <optional>

#include "devices/model_state.h"

namespace rivulet::runtime {

/// One copy of the model, passed from the train thread to the evaluator. A single slot: the reader requests a
/// copy, and the train thread makes it at the end of the next round, even if that round had no rows. Copies
/// nothing before the first step, or if there was no step since the last copy. Cost on the train thread: one
/// atomic load per round, and a copy of the parameters per request.
class SnapshotSlot {
 public:
  /// `space` has the layout of the model; nullopt if there is no reader.
  explicit SnapshotSlot(std::optional<devices::ModelState> space) : space_(std::move(space)) {}

  // reader
  void request() noexcept { state_.store(State::requested, std::memory_order_release); }
  [[nodiscard]] bool ready() const noexcept { return state_.load(std::memory_order_acquire) == State::ready; }
  /// Valid from ready() until the next request().
  [[nodiscard]] const devices::ModelState& model() const { return *space_; }
  [[nodiscard]] double seconds() const noexcept { return seconds_; }  ///< since training began

  // train thread
  void offer(const devices::ModelState& model, std::uint64_t step, double seconds) {
    if (!space_ || state_.load(std::memory_order_acquire) != State::requested || step == copied_step_) return;
    space_->copy_from(model);
    copied_step_ = step;
    seconds_ = seconds;
    state_.store(State::ready, std::memory_order_release);
  }

 private:
  enum class State : std::uint8_t { resting, requested, ready };
  std::optional<devices::ModelState> space_;  // train thread while wanted, reader while ready
  double seconds_ = 0;                        // training time of the copied state; owner as above
  std::uint64_t copied_step_ = 0;             // train thread
  std::atomic<State> state_{State::resting};
};

}  // namespace rivulet::runtime
