#include <array>

#include "sync/coding/selection.h"
#include "sync/coding/sparse_slot.h"

namespace rivulet::sync {
namespace {

// RedSync (Fang et al., JPDC 2019), trimmed: a threshold between the mean and the largest size, halved until
// more numbers than wanted and less than twice as many lie above it.

constexpr std::array keys{sparse_values_key};

template <class T>
void select(const Coding&, std::span<const T> numbers, std::size_t k, std::vector<std::uint32_t>& into) {
  select_bisected(numbers, k, into);
}

void encode(const Coding& coding, const GradientView& numbers, std::span<std::byte> slot) {
  if (numbers.scalar == Scalar::f32)
    encode_sparse<float>(coding, numbers.as<float>(), &select<float>, slot);
  else
    encode_sparse<double>(coding, numbers.as<double>(), &select<double>, slot);
}

}  // namespace

extern const CompressorEntry compressor_redsync;
const CompressorEntry compressor_redsync{
    .name = "redsync",
    .wire_id = 6,
    .help = "numbers above a threshold found by halves (RedSync), the rest later",
    .keeps_residual = true,
    .slot_bytes = &sparse_slot_bytes,
    .encode = &encode,
    .decode_add = &decode_add_sparse,
    .keys = keys,
    .value_bytes = &sparse_value_bytes};

}  // namespace rivulet::sync
