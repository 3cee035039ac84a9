#include <array>

#include "sync/coding/selection.h"
#include "sync/compressor/sparse_compressor.h"

namespace rivulet::sync {
namespace {

// RedSync (Fang et al., JPDC 2019), trimmed: bisects a threshold between mean and largest magnitude, until k
// to 2 k elements exceed it, for k requested ones.

constexpr std::array keys{sparse_values_key};

struct Bisected {
  template <class T>
  static void select(const Coding&, std::span<const T> numbers, std::size_t k,
                     std::vector<std::uint32_t>& into) {
    select_bisected(numbers, k, into);
  }
};

}  // namespace

extern const CompressorEntry compressor_redsync;
const CompressorEntry compressor_redsync = sparse_compressor<Bisected>(
    "redsync", 6, "elements above a bisected threshold (RedSync); the rest stays in the residual", keys);

}  // namespace rivulet::sync
