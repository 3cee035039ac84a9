#pragma once
#include <array>
#include <cstdint>

#include "core/gradient_view.h"
#include "sync/coding/sketch.h"

namespace rivulet::runtime {

/// What this device's own steps have in common, and how far they have come: what a controller compares
/// between devices. Its odd and its even steps are two draws from its stream; where they differ is noise.
/// Owner: the train thread.
class StepSketches {
 public:
  /// The gradient [P] of an own step.
  void stepped(const GradientView& gradient) {
    (steps_ % 2 == 0 ? even_ : odd_).add(gradient);
    ++steps_;
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
  [[nodiscard]] const std::array<float, sync::Sketch::small>& movement() const noexcept { return movement_; }

 private:
  sync::Sketch odd_;
  sync::Sketch even_;
  std::array<float, sync::Sketch::small> movement_{};
  std::uint32_t steps_ = 0;
  std::uint32_t steps_behind_ = 0;  ///< the movement
};

}  // namespace rivulet::runtime
