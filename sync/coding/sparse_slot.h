#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "core/gradient_view.h"
#include "core/result.h"
#include "sync/coding/coding.h"

/// Slots of compressors that send some numbers and leave the others out; how they find them is their own.
/// From its beginning:
///
///   entries u32 | position code u8, value code u8, 0 u16 | positions | to the next byte: scales, values |
///   zeros
///
/// (positions.h, values.h). As many entries as fit: how many positions do depends on where they lie. Pure;
/// any thread.
namespace rivulet::sync {

/// Of all such compressors: how a number is sent.
inline constexpr Key sparse_values_key{.name = "compression.topk.values",
                                       .type = KeyType::text,
                                       .text = "\"i8\"",
                                       .help = "of compressors that send some numbers: how one is sent",
                                       .choices = "f32 | f16 | bf16 | i8 | sign"};

/// Positions of about `k` of the largest numbers, ascending; never of one that is 0 or not finite.
template <class T>
using Select = std::function<void(const Coding&, std::span<const T> numbers, std::size_t k,
                                  std::vector<std::uint32_t>&)>;

/// For CompressorEntry, of each such compressor.
std::uint64_t sparse_slot_bytes(const ContributionShape& shape, double keep_ratio, const Settings& settings);
template <class T>
void encode_sparse(const Coding& coding, std::span<const T> numbers, const Select<T>& select,
                   std::span<std::byte> slot);
Status decode_add_sparse(const Coding& coding, std::span<const std::byte> slot, double weight,
                         const GradientView& sum);
/// With their scales.
std::uint64_t sparse_value_bytes(const Coding& coding, std::span<const std::byte> slot);

}  // namespace rivulet::sync
