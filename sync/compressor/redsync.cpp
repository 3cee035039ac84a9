#include <array>

#include "sync/coding/selection.h"
#include "sync/compressor/sparse_compressor.h"

namespace rivulet::sync {
namespace {

// RedSync (Fang et al., JPDC 2019), trimmed: a threshold between the mean and the largest size, halved until
// more numbers than wanted and less than twice as many lie above it.

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
    "redsync", 6, "numbers above a threshold found by halves (RedSync), the rest later", keys);

}  // namespace rivulet::sync
