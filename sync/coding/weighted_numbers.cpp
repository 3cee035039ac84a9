#include "sync/coding/weighted_numbers.h"

#include <bit>
#include <cstring>

#include "core/vector_code.h"

namespace rivulet::sync {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are sent in host order");

template <class T>
[[gnu::always_inline]] inline void scale(const T* __restrict in, std::size_t count, double weight,
                                         std::byte* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) {
    const T scaled = static_cast<T>(weight * static_cast<double>(in[i]));
    std::memcpy(out + i * sizeof scaled, &scaled, sizeof scaled);
  }
}

template <class T>
[[gnu::always_inline]] inline void add(const std::byte* __restrict in, T* __restrict sum, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, in + i * sizeof x, sizeof x);
    sum[i] += x;
  }
}

template <class T>
[[gnu::always_inline]] inline void add_times(const std::byte* __restrict in, double weight, T* __restrict sum,
                                             std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T x;
    std::memcpy(&x, in + i * sizeof x, sizeof x);
    sum[i] += static_cast<T>(weight * static_cast<double>(x));
  }
}

RIVULET_VECTOR_CODE void scale_f32(const float* in, std::size_t count, double weight, std::byte* out) {
  scale(in, count, weight, out);
}

RIVULET_VECTOR_CODE void add_f32(const std::byte* in, float* sum, std::size_t count) {
  add(in, sum, count);
}

RIVULET_VECTOR_CODE void add_times_f32(const std::byte* in, double weight, float* sum, std::size_t count) {
  add_times(in, weight, sum, count);
}

}  // namespace

void scale_to(const GradientView& in, double weight, std::byte* out) {
  if (in.scalar == Scalar::f32)
    scale_f32(in.as<float>().data(), in.count, weight, out);
  else
    scale(in.as<double>().data(), in.count, weight, out);
}

void add_from(const std::byte* in, const GradientView& sum) {
  if (sum.scalar == Scalar::f32)
    add_f32(in, sum.as<float>().data(), sum.count);
  else
    add(in, sum.as<double>().data(), sum.count);
}

void add_scaled(const std::byte* in, double weight, const GradientView& sum) {
  if (sum.scalar == Scalar::f32)
    add_times_f32(in, weight, sum.as<float>().data(), sum.count);
  else
    add_times(in, weight, sum.as<double>().data(), sum.count);
}

}  // namespace rivulet::sync
