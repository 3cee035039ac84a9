#pragma once
#include <array>

#include "core/gradient_view.h"

namespace rivulet::sync {

/// Keep ratios for which devices report the share of the squared norm: all values from published policies
/// (1/10
/// ... 1/1000 in GraVAC, 0.1 ... 0.001 in Flexible), and some in between.
inline constexpr std::array<double, 18> gain_keeps{1,     0.5,    0.25,   0.1,   0.066,  0.05,
                                                   0.033, 0.025,  0.016,  0.011, 0.01,   0.00625,
                                                   0.004, 0.0025, 0.0016, 0.001, 0.0005, 0.0001};

/// Gain of a contribution for compressors that keep the largest elements.
struct Gains {
  std::array<float, gain_keeps.size()> shares{};  ///< of the squared norm, one for each of gain_keeps
  double contribution_norm = 0;                   ///< of weight * gradient + residual
  double gradient_norm = 0;                       ///< of weight * gradient
};
/// `kept` [P] may be empty. Cost: about two passes over P.
Gains gains_of(const GradientView& mine, double weight, const GradientView& kept);

}  // namespace rivulet::sync
