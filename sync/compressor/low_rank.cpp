#include "sync/coding/low_rank.h"
#include "sync/compressor/compressor.h"

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

namespace rivulet::sync {
namespace {

// Low-rank approximation of each tensor, P Q^T (sync/coding/low_rank.h), with error feedback. A slot:
//
//   all P | all Q | elements of small tensors, unchanged
//
// The collective low_rank sums P and Q of all ranks and keeps Q between rounds: PowerSGD. Other collectives
// send each rank's own P and Q, after two steps of power iteration from a Q drawn in each round.

constexpr std::array keys{
    Key{.name = LowRankLayout::rank_key,
        .type = KeyType::integer,
        .text = "2",
        .help = "for compressor low_rank: rank of the approximation; usually 1 to 4",
        .least = 1,
        .most = 64},
};
constexpr int power_steps = 2;

template <class T>
struct Parts {
  std::vector<T> left, right, whole;
  explicit Parts(const LowRankLayout& layout)
      : left(layout.left()), right(layout.right()), whole(layout.whole()) {}
  /// Calls f(part) in the order of a slot.
  template <class F>
  void each(F f) {
    f(left);
    f(right);
    f(whole);
  }
};

std::size_t numbers_of(const LowRankLayout& layout) {
  return layout.left() + layout.right() + layout.whole();
}

/// Independent of the keep ratio.
std::uint64_t slot_bytes(const ContributionShape& shape, double, const Settings& settings) {
  return numbers_of(LowRankLayout(shape, settings)) * bytes_of(shape.scalar);
}

template <class T>
void encode_as(const Coding& coding, const GradientView& from, std::span<std::byte> slot) {
  const LowRankLayout layout(*coding.shape, *coding.settings);
  const std::span<const T> numbers = from.as<T>();
  Parts<T> parts(layout);
  renew_right<T>(layout, coding.draw, parts.right);
  for (int step = 0; step < power_steps; ++step) {
    multiply_right<T>(layout, numbers, parts.right, parts.left);
    orthonormalize<T>(layout, parts.left);
    multiply_left<T>(layout, numbers, parts.left, parts.right);
  }
  take_whole<T>(layout, numbers, parts.whole);
  std::byte* out = slot.data();
  parts.each([&](const std::vector<T>& part) {
    if (!part.empty()) std::memcpy(out, part.data(), part.size() * sizeof(T));
    out += part.size() * sizeof(T);
  });
}

void encode(const Coding& coding, const GradientView& numbers, std::span<std::byte> slot) {
  numbers.scalar == Scalar::f32 ? encode_as<float>(coding, numbers, slot)
                                : encode_as<double>(coding, numbers, slot);
}

template <class T>
Status add_as(const Coding& coding, std::span<const std::byte> slot, double weight, const GradientView& sum) {
  const LowRankLayout layout(*coding.shape, *coding.settings);
  if (slot.size() != numbers_of(layout) * sizeof(T))
    return Error{ErrorCode::protocol, "low_rank slot has " + std::to_string(slot.size()) +
                                          " bytes, expected " +
                                          std::to_string(numbers_of(layout) * sizeof(T))};
  Parts<T> parts(layout);
  const std::byte* in = slot.data();
  parts.each([&](std::vector<T>& part) {
    if (!part.empty()) std::memcpy(part.data(), in, part.size() * sizeof(T));
    in += part.size() * sizeof(T);
  });
  add_product<T>(layout, parts.left, parts.right, weight, sum.as<T>());
  add_whole<T>(layout, parts.whole, weight, sum.as<T>());
  return ok();
}

Status decode_add(const Coding& coding, std::span<const std::byte> slot, double weight,
                  const GradientView& sum) {
  return sum.scalar == Scalar::f32 ? add_as<float>(coding, slot, weight, sum)
                                   : add_as<double>(coding, slot, weight, sum);
}

}  // namespace

extern const CompressorEntry compressor_low_rank;
const CompressorEntry compressor_low_rank{.name = "low_rank",
                                          .wire_id = 4,
                                          .help = "low-rank approximation of each tensor (PowerSGD)",
                                          .keeps_residual = true,
                                          .entries = false,
                                          .slot_bytes = &slot_bytes,
                                          .encode = &encode,
                                          .decode_add = &decode_add,
                                          .keys = keys,
                                          .usual = true};

}  // namespace rivulet::sync
