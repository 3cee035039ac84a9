// The largest elements in eight bits with one scale; rounding errors stay in the residual.
#include "tests/support/parts/compressor/sparse.h"

namespace rivulet::sync {
namespace {

constexpr std::size_t entry_bytes = 5;

std::uint64_t slot_bytes(const ContributionShape& shape, double keep_ratio, const Settings&) {
  return 4 + testing::entries_of(shape, keep_ratio) * entry_bytes;
}

void encode(const Coding&, const GradientView& numbers, std::span<std::byte> slot) {
  std::ranges::fill(slot, std::byte{0});
  const auto kept = testing::largest(numbers, (slot.size() - 4) / entry_bytes);
  double most = 0;
  for (const std::uint32_t i : kept) most = std::max(most, std::abs(testing::number_at(numbers, i)));
  const auto scale = static_cast<float>(most / 127);
  testing::put_at(slot, 0, scale);
  std::size_t at = 4;
  for (const std::uint32_t i : kept) {
    const double steps = scale > 0 ? std::round(testing::number_at(numbers, i) / double{scale}) : 0;
    testing::put_at(slot, at, i);
    testing::put_at(slot, at + 4, static_cast<std::int8_t>(std::clamp(steps, -127.0, 127.0)));
    at += entry_bytes;
  }
}

Status decode_add(const Coding&, std::span<const std::byte> slot, double weight, const GradientView& sum) {
  if (slot.size() < 4) return Error{ErrorCode::protocol, "has no scale"};
  const auto scale = testing::take_at<float>(slot, 0);
  if (!std::isfinite(scale) || scale < 0) return Error{ErrorCode::protocol, "has a scale that is none"};
  for (std::size_t at = 4; at + entry_bytes <= slot.size(); at += entry_bytes) {
    const auto i = testing::take_at<std::uint32_t>(slot, at);
    if (i >= sum.count) return Error{ErrorCode::protocol, "names a number out of range"};
    testing::add_at(sum, i, weight * double{scale} * testing::take_at<std::int8_t>(slot, at + 4));
  }
  return ok();
}

}  // namespace
extern const CompressorEntry compressor_coarse_topk;
const CompressorEntry compressor_coarse_topk{.name = "coarse_topk",
                                             .wire_id = 0xff02,
                                             .help = "test only",
                                             .keeps_residual = true,
                                             .slot_bytes = &slot_bytes,
                                             .encode = &encode,
                                             .decode_add = &decode_add};
}  // namespace rivulet::sync
