#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "sync/coding/positions.h"
#include "sync/coding/selection.h"
#include "sync/coding/values.h"
#include "sync/compressor/compressor.h"

namespace rivulet::sync {
namespace {

// Top-k with error feedback (Stich et al., Sparsified SGD with Memory, 2018): the numbers of the largest size
// are sent, all others later. A slot is, from its beginning:
//
//   entries u32 | position code u8, value code u8, 0 u16 | positions | to the next byte: scales, values |
//   zeros
//
// (sync/coding/). As many entries as fit: how many positions do depends on where they lie.

constexpr std::array keys{
    Key{.name = "compression.topk.values",
        .type = KeyType::text,
        .text = "\"i8\"",
        .help = "of compressor topk: how a number is sent",
        .choices = "f32 | f16 | bf16 | i8 | sign"},
    Key{.name = "compression.topk.per_tensor",
        .type = KeyType::boolean,
        .text = "false",
        .help = "of compressor topk: the same share of every tensor, and not of all numbers together"},
};

constexpr std::size_t header_bytes = 8;

ValueCode value_code(const Settings& settings) {
  return *value_code_of(settings.text(keys[0].name));
}

std::uint64_t slot_bytes(const ContributionShape& shape, double keep_ratio, const Settings& settings) {
  const ValueCode code = value_code(settings);
  const std::size_t count = shape.parameters();
  const auto k = static_cast<double>(entries_of(count, keep_ratio));
  const double bits = expected_position_bits(k, static_cast<double>(count)) + k * bits_of(code);
  const std::size_t scales = has_scales(code) ? sizeof(float) * shape.tensors.size() : 0;
  return header_bytes + scales + static_cast<std::uint64_t>(std::ceil(bits / 8)) + 2;
}

/// Of each position: the tensor it lies in.
std::vector<std::uint32_t> tensors_of(const ContributionShape& shape,
                                      std::span<const std::uint32_t> positions) {
  std::vector<std::uint32_t> all;
  all.reserve(positions.size());
  std::size_t tensor = 0;
  std::size_t end = shape.tensors.empty() ? 0 : shape.tensors[0];
  for (const std::uint32_t at : positions) {
    while (at >= end) end += shape.tensors[++tensor];
    all.push_back(static_cast<std::uint32_t>(tensor));
  }
  return all;
}

template <class T>
void select(const Coding& coding, std::span<const T> numbers, std::size_t k,
            std::vector<std::uint32_t>& into) {
  if (!coding.settings->flag(keys[1].name)) return select_largest(numbers, k, into);
  into.clear();
  std::vector<std::uint32_t> of_tensor;
  std::size_t begin = 0;
  for (const std::size_t count : coding.shape->tensors) {
    const double share = static_cast<double>(k) / static_cast<double>(numbers.size());
    select_largest(numbers.subspan(begin, count), entries_of(count, share), of_tensor);
    for (const std::uint32_t at : of_tensor) into.push_back(static_cast<std::uint32_t>(begin + at));
    begin += count;
  }
}

/// As many of the largest as fit into so many bits, and how their positions are written.
template <class T>
PositionCost select_fitting(const Coding& coding, std::span<const T> numbers, std::size_t bits,
                            std::vector<std::uint32_t>& into) {
  const unsigned value_bits = bits_of(value_code(*coding.settings));
  std::size_t k = entries_of(numbers.size(), coding.keep_ratio);
  const auto needed = [&](const PositionCost& cost) { return cost.bits + into.size() * value_bits; };
  select(coding, numbers, k, into);
  PositionCost cost = cost_of_positions(into);
  // Positions that lie together take less than was reckoned with.
  if (const std::size_t used = needed(cost); used > 0 && used + used / 16 < bits && into.size() == k) {
    k = std::min(numbers.size(), k * bits / used);
    select(coding, numbers, k, into);
    cost = cost_of_positions(into);
  }
  while (needed(cost) > bits) {
    const double share = static_cast<double>(bits) / static_cast<double>(needed(cost));
    k = std::min(into.size() - 1, static_cast<std::size_t>(static_cast<double>(into.size()) * share * 0.998));
    select(coding, numbers, k, into);
    keep_largest(numbers, k, into);  // of each tensor there is one at least
    cost = cost_of_positions(into);
  }
  return cost;
}

template <class T>
void encode_as(const Coding& coding, const GradientView& from, std::span<std::byte> slot) {
  const std::span<const T> numbers = from.as<T>();
  const ValueCode code = value_code(*coding.settings);
  const std::size_t tensors = coding.shape->tensors.size();
  const std::size_t fixed = header_bytes + (has_scales(code) ? sizeof(float) * tensors : 0) + 1;
  RIVULET_CHECK(slot.size() > fixed, "a slot without room for an entry");
  std::vector<std::uint32_t> positions;
  const PositionCost cost = select_fitting(coding, numbers, 8 * (slot.size() - fixed), positions);
  BitWriter out(slot);
  out.put(static_cast<std::uint32_t>(positions.size()), 32);
  out.put(static_cast<std::uint32_t>(cost.code), 8);
  out.put(static_cast<std::uint32_t>(code), 24);
  put_positions(positions, cost, out);
  out.align();
  std::vector<float> values;
  gather_values(numbers, positions, values);
  put_values(values, tensors_of(*coding.shape, positions), tensors, code, out);
}

void encode(const Coding& coding, const GradientView& numbers, std::span<std::byte> slot) {
  numbers.scalar == Scalar::f32 ? encode_as<float>(coding, numbers, slot)
                                : encode_as<double>(coding, numbers, slot);
}

template <class T>
void add_as(std::span<const std::uint32_t> positions, std::span<const float> values, double weight,
            const GradientView& sum) {
  const auto into = sum.as<T>();
  for (std::size_t i = 0; i < positions.size(); ++i)
    into[positions[i]] += static_cast<T>(weight * static_cast<double>(values[i]));
}

Status decode_add(const Coding& coding, std::span<const std::byte> slot, double weight,
                  const GradientView& sum) {
  const auto bad = [](const char* what) {
    return Error{ErrorCode::protocol, std::string("topk slot: ") + what};
  };
  const ValueCode code = value_code(*coding.settings);
  BitReader in(slot);
  const std::size_t entries = in.get(32);
  const std::uint32_t position_code = in.get(8);
  if (in.get(24) != static_cast<std::uint32_t>(code) || !in.fine()) return bad("values of another kind");
  if (position_code > static_cast<std::uint32_t>(PositionCode::varint))
    return bad("positions of no known kind");
  std::vector<std::uint32_t> positions;
  if (!get_positions(in, static_cast<PositionCode>(position_code), entries, sum.count, positions))
    return bad("positions that do not lie in the model");
  in.align();
  std::vector<float> values(positions.size());
  const auto tensors = tensors_of(*coding.shape, positions);
  if (!get_values(in, tensors, coding.shape->tensors.size(), code, values))
    return bad("values that are no numbers");
  sum.scalar == Scalar::f32 ? add_as<float>(positions, values, weight, sum)
                            : add_as<double>(positions, values, weight, sum);
  return ok();
}

/// With their scales.
std::uint64_t value_bytes(const Coding& coding, std::span<const std::byte> slot) {
  const ValueCode code = value_code(*coding.settings);
  const std::size_t entries = BitReader(slot).get(32);
  const std::size_t scales = has_scales(code) ? sizeof(float) * coding.shape->tensors.size() : 0;
  return scales + (entries * bits_of(code) + 7) / 8;
}

}  // namespace

extern const CompressorEntry compressor_topk;
const CompressorEntry compressor_topk{.name = "topk",
                                      .wire_id = 3,
                                      .help = "the largest numbers, the rest later",
                                      .keeps_residual = true,
                                      .slot_bytes = &slot_bytes,
                                      .encode = &encode,
                                      .decode_add = &decode_add,
                                      .keys = keys,
                                      .value_bytes = &value_bytes};

}  // namespace rivulet::sync
