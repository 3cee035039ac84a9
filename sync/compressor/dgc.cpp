#include <array>

#include "sync/coding/selection.h"
#include "sync/compressor/sparse_compressor.h"

namespace rivulet::sync {
namespace {

// The threshold of Deep Gradient Compression (Lin et al., ICLR 2018), as in the code of GRACE and GraVAC:
// taken from a sample, then raised or lowered until about the requested number of elements exceed it. Its
// momentum correction is compression.momentum = "own".

constexpr std::array keys{sparse_values_key};

struct Sampled {
  template <class T>
  static void select(const Coding& coding, std::span<const T> numbers, std::size_t k,
                     std::vector<std::uint32_t>& into) {
    select_sampled(numbers, k, coding.draw, into);
  }
};

}  // namespace

extern const CompressorEntry compressor_dgc;
const CompressorEntry compressor_dgc = sparse_compressor<Sampled>(
    "dgc", 5, "elements above a sampled threshold (DGC); the rest stays in the residual", keys);

}  // namespace rivulet::sync
