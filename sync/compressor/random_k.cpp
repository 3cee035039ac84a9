#include <algorithm>
#include <array>

#include "core/rng.h"
#include "sync/coding/selection.h"
#include "sync/compressor/compressor.h"

namespace rivulet::sync {
namespace {

// Random-k with error feedback (Stich et al., Sparsified SGD with Memory, 2018). Cuts the parameters into k
// ranges of equal length and sends one element from each, the same on all devices: no positions are
// sent, and each element is sent with probability k / P. Two passes over k; bytes: k elements.

constexpr std::array keys{Key{.name = "compression.random_k.seed",
                              .type = KeyType::integer,
                              .text = "1",
                              .help = "for compressor random-k: seed for the random selection of elements"}};

/// Calls visit(index of the entry, position) for the `k` drawn elements.
template <class Visit>
void for_each_drawn(const Coding& coding, std::size_t count, std::size_t k, Visit visit) {
  const auto seed = static_cast<std::uint64_t>(coding.settings->integer(keys[0].name));
  Rng rng(derive_seed(seed, "random-k", coding.draw));
  for (std::size_t i = 0; i < k; ++i) {
    const std::size_t begin = count * i / k;
    const std::size_t end = count * (i + 1) / k;
    visit(i, begin + rng.below(end - begin));
  }
}

std::uint64_t slot_bytes(const ContributionShape& shape, double keep_ratio, const Settings&) {
  return std::uint64_t{entries_of(shape.parameters(), keep_ratio)} * bytes_of(shape.scalar);
}

template <class T>
void encode_as(const Coding& coding, const GradientView& numbers, std::span<std::byte> slot) {
  const auto from = numbers.as<T>();
  for_each_drawn(coding, from.size(), slot.size() / sizeof(T), [&](std::size_t i, std::size_t at) {
    std::ranges::copy(std::as_bytes(from.subspan(at, 1)), slot.subspan(i * sizeof(T)).begin());
  });
}

template <class T>
void add_as(const Coding& coding, std::span<const std::byte> slot, double weight, const GradientView& sum) {
  const auto into = sum.as<T>();
  for_each_drawn(coding, into.size(), slot.size() / sizeof(T), [&](std::size_t i, std::size_t at) {
    T value{};
    std::ranges::copy(slot.subspan(i * sizeof(T), sizeof(T)),
                      std::as_writable_bytes(std::span(&value, 1)).begin());
    into[at] += static_cast<T>(weight * static_cast<double>(value));
  });
}

void encode(const Coding& coding, const GradientView& numbers, std::span<std::byte> slot) {
  numbers.scalar == Scalar::f32 ? encode_as<float>(coding, numbers, slot)
                                : encode_as<double>(coding, numbers, slot);
}

Status decode_add(const Coding& coding, std::span<const std::byte> slot, double weight,
                  const GradientView& sum) {
  const std::size_t number = bytes_of(sum.scalar);
  if (slot.empty() || slot.size() % number != 0 || slot.size() > sum.bytes())
    return Error{ErrorCode::protocol, "random-k slot has " + std::to_string(slot.size()) +
                                          " bytes, expected a whole number of elements, from 1 to " +
                                          std::to_string(sum.count)};
  sum.scalar == Scalar::f32 ? add_as<float>(coding, slot, weight, sum)
                            : add_as<double>(coding, slot, weight, sum);
  return ok();
}

}  // namespace

extern const CompressorEntry compressor_random_k;
const CompressorEntry compressor_random_k{.name = "random-k",
                                          .wire_id = 2,
                                          .help = "elements drawn at random; the rest stays in the residual",
                                          .keeps_residual = true,
                                          .slot_bytes = &slot_bytes,
                                          .encode = &encode,
                                          .decode_add = &decode_add,
                                          .keys = keys};

}  // namespace rivulet::sync
