#include <array>

#include "sync/coding/selection.h"
#include "sync/coding/sparse_slot.h"

namespace rivulet::sync {
namespace {

// The threshold of Deep Gradient Compression (Lin et al., ICLR 2018), as GRACE and GraVAC's code have it:
// that of the largest of a sample, raised or lowered until about as many numbers as wanted lie above. Its
// momentum correction is compression.momentum = "own".

constexpr std::array keys{sparse_values_key};

template <class T>
void select(const Coding& coding, std::span<const T> numbers, std::size_t k,
            std::vector<std::uint32_t>& into) {
  select_sampled(numbers, k, coding.draw, into);
}

void encode(const Coding& coding, const GradientView& numbers, std::span<std::byte> slot) {
  if (numbers.scalar == Scalar::f32)
    encode_sparse<float>(coding, numbers.as<float>(), &select<float>, slot);
  else
    encode_sparse<double>(coding, numbers.as<double>(), &select<double>, slot);
}

}  // namespace

extern const CompressorEntry compressor_dgc;
const CompressorEntry compressor_dgc{
    .name = "dgc",
    .wire_id = 5,
    .help = "numbers above a threshold that a sample of them gives (DGC), the rest later",
    .keeps_residual = true,
    .slot_bytes = &sparse_slot_bytes,
    .encode = &encode,
    .decode_add = &decode_add_sparse,
    .keys = keys,
    .value_bytes = &sparse_value_bytes};

}  // namespace rivulet::sync
