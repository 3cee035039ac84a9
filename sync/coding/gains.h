#pragma once
#include <array>

#include "core/gradient_view.h"

namespace rivulet::sync {

/// Shares of the numbers of which devices say what part of the squared norm lies in them: all that published
/// policies try (1/10 ... 1/1000 of GraVAC, 0.1 ... 0.001 of Flexible), and some between.
inline constexpr std::array<double, 18> gain_keeps{1,     0.5,    0.25,   0.1,   0.066,  0.05,
                                                   0.033, 0.025,  0.016,  0.011, 0.01,   0.00625,
                                                   0.004, 0.0025, 0.0016, 0.001, 0.0005, 0.0001};

/// What a compressor that keeps the largest numbers would send of a contribution.
struct Gains {
  std::array<float, gain_keeps.size()> shares{};  ///< of the squared norm, by gain_keeps
  double contribution_norm = 0;                   ///< weight * gradient + residual
  double gradient_norm = 0;                       ///< weight * gradient
};
/// `kept` [P] may be empty. Cost: about two passes over P.
Gains gains_of(const GradientView& mine, double weight, const GradientView& kept);

}  // namespace rivulet::sync
