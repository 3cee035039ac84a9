#include <algorithm>
#include <array>

#include "sync/coding/selection.h"
#include "sync/coding/sparse_slot.h"

namespace rivulet::sync {
namespace {

// GraVAC's "compress the compressed" (Tyagi and Swany, CLOUD 2023): of all numbers a few times as many as
// wanted, by the threshold of a sample; of those the largest.

constexpr Key first_level{
    .name = "compression.multi_level.times",
    .text = "10",
    .help = "of compressor multi_level: how many times as many numbers the first level leaves",
    .least = 1,
    .most = 1000};
constexpr std::array keys{sparse_values_key, first_level};

template <class T>
void select(const Coding& coding, std::span<const T> numbers, std::size_t k,
            std::vector<std::uint32_t>& into) {
  const double times = coding.settings->number(first_level.name);
  const double first = std::min(static_cast<double>(numbers.size()), times * static_cast<double>(k));
  select_sampled(numbers, static_cast<std::size_t>(first), coding.draw, into);
  if (into.size() < k) return select_largest(numbers, k, into);  // too few for a second level
  keep_largest(numbers, k, into);
}

void encode(const Coding& coding, const GradientView& numbers, std::span<std::byte> slot) {
  if (numbers.scalar == Scalar::f32)
    encode_sparse<float>(coding, numbers.as<float>(), &select<float>, slot);
  else
    encode_sparse<double>(coding, numbers.as<double>(), &select<double>, slot);
}

}  // namespace

extern const CompressorEntry compressor_multi_level;
const CompressorEntry compressor_multi_level{
    .name = "multi_level",
    .wire_id = 7,
    .help = "the largest of the largest: a threshold first, then exactly (GraVAC's multi-level)",
    .keeps_residual = true,
    .slot_bytes = &sparse_slot_bytes,
    .encode = &encode,
    .decode_add = &decode_add_sparse,
    .keys = keys,
    .value_bytes = &sparse_value_bytes};

}  // namespace rivulet::sync
