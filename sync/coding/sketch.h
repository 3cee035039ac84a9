#pragma once
#include <array>
#include <cstddef>

#include "core/gradient_view.h"

namespace rivulet::sync {

/// A vector of any length in a few numbers, such that inner products and norms of vectors are nearly those of
/// their sketches: every number with a drawn sign, summed by its place modulo `size` (count sketch, Charikar
/// et al. 2002, without its hashed places). The same projection in every process. A value; any thread.
///
/// Error of an inner product: about |a| |b| / sqrt(size). Cost of add(): one pass, about that of a sum.
struct Sketch {
  static constexpr std::size_t size = 1024;
  static constexpr std::size_t small = 32;
  std::array<float, size> sums{};

  /// += the sketch of these numbers, in host memory.
  void add(const GradientView& numbers);
  void clear() noexcept { sums.fill(0); }
  /// For the wire: a sketch of the same vector in fewer numbers.
  [[nodiscard]] std::array<float, small> folded() const noexcept;
};

/// Of the vectors behind them, nearly.
double inner_product(const Sketch& a, const Sketch& b) noexcept;

}  // namespace rivulet::sync
