#include <array>

#include "sync/coding/selection.h"
#include "sync/compressor/sparse_compressor.h"

namespace rivulet::sync {
namespace {

// The threshold of Deep Gradient Compression (Lin et al., ICLR 2018), as GRACE and GraVAC's code have it:
// that of the largest of a sample, raised or lowered until about as many numbers as wanted lie above. Its
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
    "dgc", 5, "numbers above a threshold that a sample of them gives (DGC), the rest later", keys);

}  // namespace rivulet::sync
