#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/gradient_view.h"
#include "sync/coding/sketch.h"

namespace rivulet::runtime {

/// Sketches of this device's local steps and of its delta, which controllers compare between devices. Odd and
/// even steps are two samples of its stream; their difference is noise. Owner: the train thread.
class StepSketches {
 public:
  /// Adds a local step: the mean gradient [P] of `rows` rows.
  void stepped(const GradientView& gradient, std::size_t rows) {
    (steps_ % 2 == 0 ? even_ : odd_).add(gradient);
    ++steps_;
    rows_ += rows;
  }
  /// Sets the delta [P] of `steps` local steps since the last synchronization.
  void add_delta(const GradientView& delta, std::uint32_t steps) {
    steps_behind_ = steps;
    sync::Sketch sketch;
    sketch.add(delta);
    delta_ = sketch.folded();
  }
  /// Call when the group has synchronized. A single step is kept, so that the next step completes the pair.
  void begin() {
    delta_ = {};
    if (steps_ > 1) clear();
  }
  /// Discards all steps: they are unrelated to the next ones.
  void clear() {
    odd_.clear();
    even_.clear();
    steps_ = 0;
    rows_ = 0;
    delta_ = {};
  }

  /// Returns the inner product of the sum of odd steps and the sum of even steps; 0 until both exist.
  [[nodiscard]] double signal() const noexcept { return steps_ > 1 ? inner_product(odd_, even_) : 0; }
  /// Returns a quarter of the squared distance between these sums; 0 until both exist. It estimates the noise
  /// of their mean; a single step has twice that noise.
  [[nodiscard]] double noise() const noexcept {
    if (steps_ < 2) return 0;
    const double distance =
        inner_product(odd_, odd_) + inner_product(even_, even_) - 2 * inner_product(odd_, even_);
    return distance / (steps_behind_ == 1 ? 2 : 4);
  }
  /// gradient_signal(): |G|^2 of the expected gradient; may be negative. gradient_noise(): the trace of the
  /// covariance of single rows' gradients. Estimated from two halves of the rows (McCandlish et al. 2018,
  /// appendix A, who compare batches of two sizes); 0 until both exist.
  [[nodiscard]] double gradient_signal() const noexcept {
    if (steps_ < 2) return 0;
    return inner_product(odd_, even_) / (halves(0) * halves(1));
  }
  [[nodiscard]] double gradient_noise() const noexcept {
    if (steps_ < 2) return 0;
    const double distance = inner_product(even_, even_) / (halves(0) * halves(0)) +
                            inner_product(odd_, odd_) / (halves(1) * halves(1)) -
                            2 * inner_product(odd_, even_) / (halves(0) * halves(1));
    const double rows_of_a_step = static_cast<double>(rows_) / steps_;
    return distance / (1 / halves(0) + 1 / halves(1)) * rows_of_a_step;
  }
  [[nodiscard]] const std::array<float, sync::Sketch::small>& delta() const noexcept { return delta_; }

 private:
  /// Number of even (0) or odd (1) steps.
  [[nodiscard]] double halves(std::uint32_t which) const noexcept {
    const std::uint32_t steps = (steps_ + 1 - which) / 2;
    return steps;
  }

  sync::Sketch odd_;
  sync::Sketch even_;
  std::array<float, sync::Sketch::small> delta_{};
  std::uint32_t steps_ = 0;
  std::size_t rows_ = 0;
  std::uint32_t steps_behind_ = 0;  ///< number of steps in the delta
};

}  // namespace rivulet::runtime
