#include "sync/coding/sketch.h"

#include <algorithm>
#include <cstdint>

#include "core/rng.h"
#include "core/vector_code.h"

namespace rivulet::sync {
namespace {

constexpr std::uint64_t seed = 0x736b65746368;  // one projection everywhere, because sketches are compared

/// Random signs. Each block starts at a drawn offset, so that two indices with the same sum seldom have the
/// same signs in two blocks.
struct Signs {
  std::array<float, 2 * Sketch::size> twice{};
  Signs() {
    Rng rng(seed);
    for (std::size_t i = 0; i < Sketch::size; ++i)
      twice[i] = twice[i + Sketch::size] = rng.below(2) == 0 ? -1.0F : 1.0F;
  }
};

/// sums[i] += signs[i] * numbers[i]
RIVULET_VECTOR_CODE void add_signed(const float* __restrict signs, const float* __restrict numbers,
                                    std::size_t count, float* __restrict sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += signs[i] * numbers[i];
}
void add_signed(const float* signs, const double* numbers, std::size_t count, float* sums) {
  for (std::size_t i = 0; i < count; ++i) sums[i] += signs[i] * static_cast<float>(numbers[i]);
}

template <class T>
void add_all(std::span<const T> numbers, std::array<float, Sketch::size>& sums) {
  static const Signs signs;
  Rng steps(seed + 1);
  for (std::size_t begin = 0; begin < numbers.size(); begin += Sketch::size) {
    const std::size_t count = std::min(Sketch::size, numbers.size() - begin);
    add_signed(signs.twice.data() + steps.below(Sketch::size), numbers.data() + begin, count, sums.data());
  }
}

}  // namespace

void Sketch::add(const GradientView& numbers) {
  if (numbers.scalar == Scalar::f32)
    add_all<float>(numbers.as<float>(), sums);
  else
    add_all<double>(numbers.as<double>(), sums);
}

std::array<float, Sketch::small> Sketch::folded() const noexcept {
  std::array<float, small> few{};
  for (std::size_t i = 0; i < size; ++i) few[i % small] += sums[i];
  return few;
}

double inner_product(const Sketch& a, const Sketch& b) noexcept {
  double sum = 0;
  for (std::size_t i = 0; i < Sketch::size; ++i) sum += static_cast<double>(a.sums[i]) * b.sums[i];
  return sum;
}

}  // namespace rivulet::sync
