#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "core/gradient_view.h"
#include "sync/coding/sketch.h"

namespace rivulet::runtime {

/// What this device's own steps have in common, and how far they have come: what a controller compares
/// between devices. Its odd and its even steps are two draws from its stream; where they differ is noise.
/// Owner: the train thread.
class StepSketches {
 public:
  /// The mean gradient [P] of N rows, of an own step.
  void stepped(const GradientView& gradient, std::size_t rows) {
    (steps_ % 2 == 0 ? even_ : odd_).add(gradient);
    ++steps_;
    rows_ += rows;
  }
  /// The movement [P] of `steps` since the last agreement.
  void moved(const GradientView& movement, std::uint32_t steps) {
    steps_behind_ = steps;
    sync::Sketch sketch;
    sketch.add(movement);
    movement_ = sketch.folded();
  }
  /// The group has agreed. A single step waits for the next one: two make a pair.
  void begin() {
    movement_ = {};
    if (steps_ > 1) clear();
  }
  /// Its steps have nothing to do with those to come.
  void clear() {
    odd_.clear();
    even_.clear();
    steps_ = 0;
    rows_ = 0;
    movement_ = {};
  }

  /// Inner product of the sums of the odd and the even steps; 0 before there are both.
  [[nodiscard]] double signal() const noexcept { return steps_ > 1 ? inner_product(odd_, even_) : 0; }
  /// A quarter of the squared distance of these sums; 0 before there are both. The mean of both has so much
  /// noise; behind a single step is twice as much.
  [[nodiscard]] double noise() const noexcept {
    if (steps_ < 2) return 0;
    const double distance =
        inner_product(odd_, odd_) + inner_product(even_, even_) - 2 * inner_product(odd_, even_);
    return distance / (steps_behind_ == 1 ? 2 : 4);
  }
  /// What the rows of its stream agree on: |G|^2 of the gradient behind all rows, and how far single ones are
  /// from it: the trace of their covariance. From two halves of its rows (McCandlish et al. 2018, appendix A,
  /// who compare batches of two sizes); 0 before there are both. The first may be below 0.
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
  [[nodiscard]] const std::array<float, sync::Sketch::small>& movement() const noexcept { return movement_; }

 private:
  /// Steps that are even (0), or odd (1).
  [[nodiscard]] double halves(std::uint32_t which) const noexcept {
    const std::uint32_t steps = (steps_ + 1 - which) / 2;
    return steps;
  }

  sync::Sketch odd_;
  sync::Sketch even_;
  std::array<float, sync::Sketch::small> movement_{};
  std::uint32_t steps_ = 0;
  std::size_t rows_ = 0;
  std::uint32_t steps_behind_ = 0;  ///< the movement
};

}  // namespace rivulet::runtime
