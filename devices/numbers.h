#pragma once
#include <cstddef>

#include "core/gradient_view.h"

namespace rivulet::devices {

/// Lanes of the sums below: enough to vectorize, in a fixed order of additions, so that every machine gets
/// the same bits.
inline constexpr std::size_t sum_lanes = 8;

/// Returns the sum of a[i] * b[i] over n elements, accumulated in A. Inlined into its caller, which may be
/// RIVULET_VECTOR_CODE.
template <class A, class T, class U>
[[gnu::always_inline]] inline A dot(const T* a, const U* b, std::size_t n) {
  A lanes[sum_lanes] = {};
  const std::size_t whole = n / sum_lanes * sum_lanes;
  for (std::size_t i = 0; i < whole; i += sum_lanes) {
    for (std::size_t l = 0; l < sum_lanes; ++l)
      lanes[l] += static_cast<A>(a[i + l]) * static_cast<A>(b[i + l]);
  }
  A sum = 0;
  for (std::size_t i = whole; i < n; ++i) sum += static_cast<A>(a[i]) * static_cast<A>(b[i]);
  for (const A lane : lanes) sum += lane;
  return sum;
}

/// Returns the squared L2 norm in double. Finite if and only if all elements are (squares of float32 fit).
double norm2(const GradientView& v);

}  // namespace rivulet::devices
