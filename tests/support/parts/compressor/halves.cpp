// All elements without the lower half of their bits, which is discarded.
#include "tests/support/parts/compressor/sparse.h"

namespace rivulet::sync {
namespace {

std::uint64_t slot_bytes(const ContributionShape& shape, double, const Settings&) {
  return 2 * shape.parameters();
}

void encode(const Coding&, const GradientView& numbers, std::span<std::byte> slot) {
  for (std::size_t i = 0; i < numbers.count; ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(testing::number_at(numbers, i)));
    testing::put_at(slot, 2 * i, static_cast<std::uint16_t>(bits >> 16U));
  }
}

Status decode_add(const Coding&, std::span<const std::byte> slot, double weight, const GradientView& sum) {
  if (slot.size() != 2 * sum.count) return Error{ErrorCode::protocol, "has another length"};
  for (std::size_t i = 0; i < sum.count; ++i) {
    const auto bits = std::uint32_t{testing::take_at<std::uint16_t>(slot, 2 * i)} << 16U;
    testing::add_at(sum, i, weight * double{std::bit_cast<float>(bits)});
  }
  return ok();
}

}  // namespace
extern const CompressorEntry compressor_halves;
const CompressorEntry compressor_halves{.name = "halves",
                                        .wire_id = 0xff03,
                                        .help = "test only",
                                        .slot_bytes = &slot_bytes,
                                        .encode = &encode,
                                        .decode_add = &decode_add};
}  // namespace rivulet::sync
