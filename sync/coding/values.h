#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sync/coding/bit_stream.h"

/// The values of sparse entries as few bits, the same on every machine. Pure; any thread.
namespace rivulet::sync {

/// f32, f16, bf16: rounded to the nearest, ties to even; what is too large becomes the largest. i8: 127 steps
/// to the largest of a group. sign: the sign, and the mean size of a group.
enum class ValueCode : std::uint8_t { f32, f16, bf16, i8, sign };
std::optional<ValueCode> value_code_of(std::string_view name);
unsigned bits_of(ValueCode code) noexcept;
/// Groups share a number of 4 bytes.
bool has_scales(ValueCode code) noexcept;

std::uint16_t half_of(float value) noexcept;
float of_half(std::uint16_t bits) noexcept;

/// The numbers at these positions, the largest of a float at most: they lie far from each other in a long
/// vector.
template <class T>
void gather_values(std::span<const T> numbers, std::span<const std::uint32_t> positions,
                   std::vector<float>& into);

/// `group[i]`, below `groups`: that of value i. All values are finite. `out` stands at the beginning of a
/// byte.
void put_values(std::span<const float> values, std::span<const std::uint32_t> group, std::size_t groups,
                ValueCode code, BitWriter& out);
/// False: these bits are no finite values.
bool get_values(BitReader& in, std::span<const std::uint32_t> group, std::size_t groups, ValueCode code,
                std::span<float> values);

}  // namespace rivulet::sync
