// The largest elements unchanged, the rest later: positions u32 and values f32 in turns.
#include "tests/support/parts/compressor/sparse.h"

namespace rivulet::sync {
namespace {

constexpr std::size_t entry_bytes = 8;

std::uint64_t slot_bytes(const ContributionShape& shape, double keep_ratio, const Settings&) {
  return testing::entries_of(shape, keep_ratio) * entry_bytes;
}

void encode(const Coding&, const GradientView& numbers, std::span<std::byte> slot) {
  std::ranges::fill(slot, std::byte{0});
  std::size_t at = 0;
  for (const std::uint32_t i : testing::largest(numbers, slot.size() / entry_bytes)) {
    testing::put_at(slot, at, i);
    testing::put_at(slot, at + 4, static_cast<float>(testing::number_at(numbers, i)));
    at += entry_bytes;
  }
}

Status decode_add(const Coding&, std::span<const std::byte> slot, double weight, const GradientView& sum) {
  for (std::size_t at = 0; at + entry_bytes <= slot.size(); at += entry_bytes) {
    const auto i = testing::take_at<std::uint32_t>(slot, at);
    if (i >= sum.count) return Error{ErrorCode::protocol, "names a number out of range"};
    testing::add_at(sum, i, weight * testing::take_at<float>(slot, at + 4));
  }
  return ok();
}

}  // namespace
extern const CompressorEntry compressor_exact_topk;
const CompressorEntry compressor_exact_topk{.name = "exact_topk",
                                            .wire_id = 0xff01,
                                            .help = "test only",
                                            .keeps_residual = true,
                                            .slot_bytes = &slot_bytes,
                                            .encode = &encode,
                                            .decode_add = &decode_add};
}  // namespace rivulet::sync
