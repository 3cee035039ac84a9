#include <algorithm>
#include <array>

#include "sync/coding/selection.h"
#include "sync/compressor/sparse_compressor.h"

namespace rivulet::sync {
namespace {

// GraVAC's "compress the compressed" (Tyagi and Swany, CLOUD 2023): a sampled threshold selects a few times
// as many elements as requested. The largest of them are sent.

constexpr Key first_level{
    .name = "compression.multi_level.times",
    .text = "10",
    .help = "for compressor multi_level: candidates that the first level selects per element sent",
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
    "multi_level", 7,
    "elements of largest magnitude among those above a sampled threshold (GraVAC's multi-level)", keys);

}  // namespace rivulet::sync
