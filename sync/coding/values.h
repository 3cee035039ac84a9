#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sync/coding/bit_stream.h"

/// Compact coding of sparse values, the same on every machine. Pure; any thread.
namespace rivulet::sync {

/// f32, f16, bf16: rounded to nearest, ties to even, clamped to the largest finite value. i8: steps of 1/127
/// of the group's largest magnitude. sign: the sign times the group's mean magnitude.
enum class ValueCode : std::uint8_t { f32, f16, bf16, i8, sign };
std::optional<ValueCode> value_code_of(std::string_view name);
unsigned bits_of(ValueCode code) noexcept;
/// True if each group has a scale of 4 bytes.
bool has_scales(ValueCode code) noexcept;

std::uint16_t half_of(float value) noexcept;
float of_half(std::uint16_t bits) noexcept;

/// Gathers the elements at these positions, clamped to the range of a float. Prefetches, because they are far
/// apart in a long vector.
template <class T>
void gather_values(std::span<const T> numbers, std::span<const std::uint32_t> positions,
                   std::vector<float>& into);

/// `group[i]`: group of value i, below `groups`. All values are finite. `out` must be at a byte boundary.
void put_values(std::span<const float> values, std::span<const std::uint32_t> group, std::size_t groups,
                ValueCode code, BitWriter& out);
/// Returns false if the bits are not finite values.
bool get_values(BitReader& in, std::span<const std::uint32_t> group, std::size_t groups, ValueCode code,
                std::span<float> values);

}  // namespace rivulet::sync
