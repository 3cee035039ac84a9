#include <algorithm>
#include <array>

#include "sync/coding/selection.h"
#include "sync/compressor/sparse_compressor.h"

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

struct Levels {
  template <class T>
  static void select(const Coding& coding, std::span<const T> numbers, std::size_t k,
                     std::vector<std::uint32_t>& into) {
    const double times = coding.settings->number(first_level.name);
    const double first = std::min(static_cast<double>(numbers.size()), times * static_cast<double>(k));
    select_sampled(numbers, static_cast<std::size_t>(first), coding.draw, into);
    if (into.size() < k) return select_largest(numbers, k, into);  // too few for a second level
    keep_largest(numbers, k, into);
  }
};

}  // namespace

extern const CompressorEntry compressor_multi_level;
const CompressorEntry compressor_multi_level = sparse_compressor<Levels>(
    "multi_level", 7, "the largest of the largest: a threshold first, then exactly (GraVAC's multi-level)",
    keys);

}  // namespace rivulet::sync
