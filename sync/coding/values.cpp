#include "sync/coding/values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "core/vector_code.h"

namespace rivulet::sync {
namespace {

constexpr float steps = 127;

/// Returns the upper half of a float, rounded.
std::uint16_t brain_of(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t even = (bits >> 16U) & 1U;
  const std::uint32_t rounded = (bits + 0x7fffU + even) >> 16U;
  const bool too_large = (rounded & 0x7f80U) == 0x7f80U;
  return static_cast<std::uint16_t>(too_large ? (rounded & 0x8000U) | 0x7f7fU : rounded);
}

float of_brain(std::uint32_t bits) noexcept {
  return std::bit_cast<float>(bits << 16U);
}

std::size_t end_of_stretch(std::span<const std::uint32_t> group, std::size_t from) {
  std::size_t to = from + 1;
  while (to < group.size() && group[to] == group[from]) ++to;
  return to;
}

/// Calls visit(group, values) for each run of values of one group.
template <class Visit>
void for_each_stretch(std::span<const float> values, std::span<const std::uint32_t> group, Visit visit) {
  for (std::size_t from = 0; from < values.size();) {
    const std::size_t to = end_of_stretch(group, from);
    visit(group[from], values.subspan(from, to - from));
    from = to;
  }
}

RIVULET_VECTOR_CODE float largest_of(const float* values, std::size_t count) {
  // Magnitudes have the same order as their bits.
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < count; ++i)
    most = std::max(most, std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffU);
  return std::bit_cast<float>(most);
}

/// Returns the scale of each group: one step of the largest magnitude, or the mean magnitude.
std::vector<float> scales_of(std::span<const float> values, std::span<const std::uint32_t> group,
                             std::size_t groups, ValueCode code) {
  std::vector<float> scales(groups);
  if (code == ValueCode::i8) {
    for_each_stretch(values, group, [&](std::uint32_t g, std::span<const float> own) {
      scales[g] = std::max(scales[g], largest_of(own.data(), own.size()));
    });
    for (float& scale : scales) scale /= steps;
    return scales;
  }
  std::vector<double> sums(groups);
  std::vector<std::size_t> counts(groups);
  for (std::size_t i = 0; i < values.size(); ++i) {
    sums[group[i]] += std::abs(values[i]);
    ++counts[group[i]];
  }
  for (std::size_t g = 0; g < groups; ++g)
    if (counts[g] > 0) scales[g] = static_cast<float>(sums[g] / static_cast<double>(counts[g]));
  return scales;
}

/// Converts to int8 steps, rounded to nearest, ties to even, by adding a float so large that its lowest bit
/// is worth 1.
RIVULET_VECTOR_CODE void steps_of(const float* values, std::size_t count, float scale, std::int8_t* out) {
  constexpr float whole = 0x1.8p23F;
  for (std::size_t i = 0; i < count; ++i) {
    const float ratio = values[i] / scale;
    const float fits = ratio < -steps ? -steps : ratio > steps ? steps : ratio;
    out[i] = static_cast<std::int8_t>(std::bit_cast<std::int32_t>(fits + whole) -
                                      std::bit_cast<std::int32_t>(whole));
  }
}

void put_steps(std::span<const float> values, std::span<const std::uint32_t> group,
               std::span<const float> scales, BitWriter& out) {
  auto* into = reinterpret_cast<std::int8_t*>(out.take(values.size()).data());
  for_each_stretch(values, group, [&](std::uint32_t g, std::span<const float> own) {
    if (scales[g] > 0)
      steps_of(own.data(), own.size(), scales[g], into);
    else
      std::fill_n(into, own.size(), std::int8_t{0});
    into += own.size();
  });
}

void put_one(float value, ValueCode code, BitWriter& out) {
  switch (code) {
    case ValueCode::f32: out.put(std::bit_cast<std::uint32_t>(value), 32); break;
    case ValueCode::f16: out.put(half_of(value), 16); break;
    case ValueCode::bf16: out.put(brain_of(value), 16); break;
    case ValueCode::sign: out.put(std::signbit(value) ? 1 : 0, 1); break;
    case ValueCode::i8: break;  // put_steps()
  }
}

float get_one(BitReader& in, float scale, ValueCode code) {
  switch (code) {
    case ValueCode::f32: return std::bit_cast<float>(in.get(32));
    case ValueCode::f16: return of_half(static_cast<std::uint16_t>(in.get(16)));
    case ValueCode::bf16: return of_brain(in.get(16));
    case ValueCode::sign: return in.get(1) != 0 ? -scale : scale;
    case ValueCode::i8: break;  // get_steps()
  }
  return 0;
}

RIVULET_VECTOR_CODE void values_of(const std::byte* steps_taken, std::size_t count, float scale, float* out) {
  for (std::size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(static_cast<std::int8_t>(steps_taken[i])) * scale;
}

/// Reads the bytes of put_steps().
void get_steps(BitReader& in, std::span<const std::uint32_t> group, std::span<const float> scales,
               std::span<float> values) {
  const auto bytes = in.take(values.size());
  for (std::size_t from = 0; from < bytes.size();) {
    const std::size_t to = end_of_stretch(group, from);
    values_of(bytes.data() + from, to - from, scales[group[from]], values.data() + from);
    from = to;
  }
}

}  // namespace

std::optional<ValueCode> value_code_of(std::string_view name) {
  constexpr std::array names{"f32", "f16", "bf16", "i8", "sign"};
  for (std::size_t i = 0; i < names.size(); ++i)
    if (name == names[i]) return static_cast<ValueCode>(i);
  return std::nullopt;
}

unsigned bits_of(ValueCode code) noexcept {
  constexpr std::array bits{32U, 16U, 16U, 8U, 1U};
  return bits[static_cast<std::size_t>(code)];
}

bool has_scales(ValueCode code) noexcept {
  return code == ValueCode::i8 || code == ValueCode::sign;
}

std::uint16_t half_of(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t size = bits & 0x7fffffffU;
  if (size >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7bffU);  // would round to infinity
  if (size < 0x38800000U) {  // below 2^-14: a multiple of 2^-24, to which the addition rounds
    const float shifted = std::bit_cast<float>(size) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U));
  }
  const std::uint32_t even = (size >> 13U) & 1U;
  return static_cast<std::uint16_t>(sign | ((size - 0x38000000U + 0xfffU + even) >> 13U));
}

float of_half(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0x1fU) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13U));
  if (exponent == 0) {
    const float size = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -size : size;
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (fraction << 13U));
}

template <class T>
void gather_values(std::span<const T> numbers, std::span<const std::uint32_t> positions,
                   std::vector<float>& into) {
  constexpr std::size_t ahead = 24;  // covers the memory latency
  constexpr double most = std::numeric_limits<float>::max();
  into.resize(positions.size());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (i + ahead < positions.size()) __builtin_prefetch(numbers.data() + positions[i + ahead]);
    into[i] = static_cast<float>(std::clamp(static_cast<double>(numbers[positions[i]]), -most, most));
  }
}
template void gather_values<float>(std::span<const float>, std::span<const std::uint32_t>,
                                   std::vector<float>&);
template void gather_values<double>(std::span<const double>, std::span<const std::uint32_t>,
                                    std::vector<float>&);

void put_values(std::span<const float> values, std::span<const std::uint32_t> group, std::size_t groups,
                ValueCode code, BitWriter& out) {
  std::vector<float> scales;
  if (has_scales(code)) scales = scales_of(values, group, groups, code);
  for (const float scale : scales) out.put(std::bit_cast<std::uint32_t>(scale), 32);
  if (code == ValueCode::i8) return put_steps(values, group, scales, out);
  for (const float value : values) put_one(value, code, out);
}

bool get_values(BitReader& in, std::span<const std::uint32_t> group, std::size_t groups, ValueCode code,
                std::span<float> values) {
  std::vector<float> scales(has_scales(code) ? groups : 0);
  for (float& scale : scales) {
    scale = std::bit_cast<float>(in.get(32));
    // 127 steps of the largest scale that an encoder writes are finite.
    if (!(scale >= 0 && scale <= std::numeric_limits<float>::max())) return false;
  }
  if (code == ValueCode::i8) {
    get_steps(in, group, scales, values);
  } else {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = get_one(in, scales.empty() ? 1 : scales[group[i]], code);
  }
  return in.fine() && std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace rivulet::sync
