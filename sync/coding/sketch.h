#pragma once
#include <array>
#include <cstddef>

#include "core/gradient_view.h"

namespace rivulet::sync {

/// A vector of any length reduced to a few values that nearly preserve inner products and norms: elements
/// with random signs, summed by index modulo `size` (count sketch, Charikar et al. 2002, without hashed
/// indices). Every process uses the same projection. A value type; any thread.
///
/// Error of an inner product: about |a| |b| / sqrt(size). Cost of add(): one pass, about the same as a sum.
struct Sketch {
  static constexpr std::size_t size = 1024;
  static constexpr std::size_t small = 32;
  std::array<float, size> sums{};

  /// Adds the sketch of a vector in host memory.
  void add(const GradientView& numbers);
  void clear() noexcept { sums.fill(0); }
  /// Returns a smaller sketch of the same vector, for the wire.
  [[nodiscard]] std::array<float, small> folded() const noexcept;
};

/// Approximates the inner product of the sketched vectors.
double inner_product(const Sketch& a, const Sketch& b) noexcept;

}  // namespace rivulet::sync
