#pragma once
#include <array>
#include <cstddef>
#include <span>

#include "core/gradient_view.h"

namespace rivulet::devices {

/// Lanes of the sums below: enough for the compiler to vectorize, and a fixed order of additions, so that
/// every machine gets the same bits.
inline constexpr std::size_t sum_lanes = 8;

/// Sum of a[i] * b[i], added up in A.
template <class A, class T, class U>
A dot(std::span<const T> a, std::span<const U> b) {
  std::array<A, sum_lanes> lanes{};
  const std::size_t whole = a.size() / sum_lanes * sum_lanes;
  for (std::size_t i = 0; i < whole; i += sum_lanes) {
    for (std::size_t l = 0; l < sum_lanes; ++l)
      lanes[l] += static_cast<A>(a[i + l]) * static_cast<A>(b[i + l]);
  }
  A sum = 0;
  for (std::size_t i = whole; i < a.size(); ++i) sum += static_cast<A>(a[i]) * static_cast<A>(b[i]);
  for (const A lane : lanes) sum += lane;
  return sum;
}

/// Squared L2 norm in double. Not finite exactly when one of the numbers is not (squares of float32 fit).
double norm2(const GradientView& v);

}  // namespace rivulet::devices
