#include <array>

#include "sync/coding/selection.h"
#include "sync/compressor/sparse_compressor.h"

namespace rivulet::sync {
namespace {

// Top-k with error feedback (Stich et al., Sparsified SGD with Memory, 2018): sends the elements of largest
// magnitude now, the others later.

constexpr Key per_tensor{
    .name = "compression.topk.per_tensor",
    .type = KeyType::boolean,
    .text = "false",
    .help = "for compressor topk: applies the keep ratio to each tensor instead of all elements together"};
constexpr std::array keys{sparse_values_key, per_tensor};

struct Largest {
  template <class T>
  static void select(const Coding& coding, std::span<const T> numbers, std::size_t k,
                     std::vector<std::uint32_t>& into) {
    if (!coding.settings->flag(per_tensor.name)) return select_largest(numbers, k, into);
    into.clear();
    std::vector<std::uint32_t> of_tensor;
    std::size_t begin = 0;
    for (const std::size_t count : coding.shape->tensors) {
      const double share = static_cast<double>(k) / static_cast<double>(numbers.size());
      select_largest(numbers.subspan(begin, count), entries_of(count, share), of_tensor);
      for (const std::uint32_t at : of_tensor) into.push_back(static_cast<std::uint32_t>(begin + at));
      begin += count;
    }
  }
};

}  // namespace

extern const CompressorEntry compressor_topk;
const CompressorEntry compressor_topk = sparse_compressor<Largest>(
    "topk", 3, "elements of largest magnitude; the rest stays in the residual", keys, true);

}  // namespace rivulet::sync
