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

/// Slots of compressors that send a subset of the elements. Each compressor selects in its own way. Layout:
///
///   entries u32 | position code u8, value code u8, 0 u16 | positions | at the next byte: scales, values |
///   zeros
///
/// See positions.h and values.h. A slot holds as many entries as fit, which depends on their positions. Pure;
/// any thread.
namespace rivulet::sync {

/// Key of all such compressors: the encoding of a value.
inline constexpr Key sparse_values_key{.name = "compression.topk.values",
                                       .type = KeyType::text,
                                       .text = "\"i8\"",
                                       .help = "for sparse compressors: encoding of the values in a slot",
                                       .choices = "f32 | f16 | bf16 | i8 | sign"};

/// Selects ascending positions of about `k` of the largest elements, none of them 0 or non-finite.
template <class T>
using Select = std::function<void(const Coding&, std::span<const T> numbers, std::size_t k,
                                  std::vector<std::uint32_t>&)>;

/// Functions for the CompressorEntry of each such compressor.
std::uint64_t sparse_slot_bytes(const ContributionShape& shape, double keep_ratio, const Settings& settings);
template <class T>
void encode_sparse(const Coding& coding, std::span<const T> numbers, const Select<T>& select,
                   std::span<std::byte> slot);
Status decode_add_sparse(const Coding& coding, std::span<const std::byte> slot, double weight,
                         const GradientView& sum);
/// Bytes of the values and their scales.
std::uint64_t sparse_value_bytes(const Coding& coding, std::span<const std::byte> slot);

}  // namespace rivulet::sync
