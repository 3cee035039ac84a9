#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "sync/compressor/compressor.h"

/// Shared by the test-only compressors of the largest elements.
namespace rivulet::testing {

inline double number_at(const GradientView& numbers, std::size_t i) {
  return numbers.scalar == Scalar::f32 ? double{numbers.as<float>()[i]} : numbers.as<double>()[i];
}
inline void add_at(const GradientView& numbers, std::size_t i, double more) {
  if (numbers.scalar == Scalar::f32)
    numbers.as<float>()[i] = static_cast<float>(double{numbers.as<float>()[i]} + more);
  else
    numbers.as<double>()[i] += more;
}

/// Positions of the `k` largest magnitudes, ascending; of equals the first.
inline std::vector<std::uint32_t> largest(const GradientView& numbers, std::size_t k) {
  std::vector<std::uint32_t> at(numbers.count);
  std::iota(at.begin(), at.end(), 0U);
  std::stable_sort(at.begin(), at.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::abs(number_at(numbers, a)) > std::abs(number_at(numbers, b));
  });
  at.resize(std::min(k, at.size()));
  std::sort(at.begin(), at.end());
  return at;
}

inline std::uint64_t entries_of(const sync::ContributionShape& shape, double keep_ratio) {
  const auto p = static_cast<double>(shape.parameters());
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::floor(p * keep_ratio)));
}

template <class T>
void put_at(std::span<std::byte> slot, std::size_t at, T value) {
  std::memcpy(slot.data() + at, &value, sizeof value);
}
template <class T>
T take_at(std::span<const std::byte> slot, std::size_t at) {
  T value;
  std::memcpy(&value, slot.data() + at, sizeof value);
  return value;
}

}  // namespace rivulet::testing
