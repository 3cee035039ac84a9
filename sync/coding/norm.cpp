#include "sync/coding/norm.h"

#include <cmath>

#include "core/vector_code.h"

namespace rivulet::sync {
namespace {

/// Sums in lanes, so that no addition waits for the one before.
template <class T>
[[gnu::always_inline]] inline double squares_in_lanes(const T* __restrict numbers, std::size_t count) {
  constexpr std::size_t lanes = 16;
  double squares[lanes] = {};
  const std::size_t whole = count / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes)
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const auto x = static_cast<double>(numbers[i + lane]);
      squares[lane] += x * x;
    }
  double sum = 0;
  for (std::size_t i = whole; i < count; ++i)
    sum += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
  for (const double lane : squares) sum += lane;
  return sum;
}
RIVULET_VECTOR_CODE double squares_of(const float* numbers, std::size_t count) {
  return squares_in_lanes(numbers, count);
}
RIVULET_VECTOR_CODE double squares_of(const double* numbers, std::size_t count) {
  return squares_in_lanes(numbers, count);
}

}  // namespace

double norm_of(const GradientView& numbers) {
  return std::sqrt(numbers.scalar == Scalar::f32 ? squares_of(numbers.as<float>().data(), numbers.count)
                                                 : squares_of(numbers.as<double>().data(), numbers.count));
}

}  // namespace rivulet::sync
