#include "sync/coding/sparse_slot.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sync/coding/positions.h"
#include "sync/coding/selection.h"
#include "sync/coding/values.h"

namespace rivulet::sync {
namespace {

constexpr std::size_t header_bytes = 8;

ValueCode value_code(const Settings& settings) {
  return *value_code_of(settings.text(sparse_values_key.name));
}

/// Returns the tensor of each position.
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

/// Selects the largest elements that fit into `bits`, and returns the code of their positions.
template <class T>
PositionCost select_fitting(const Coding& coding, std::span<const T> numbers, const Select<T>& select,
                            std::size_t bits, std::vector<std::uint32_t>& into) {
  const unsigned value_bits = bits_of(value_code(*coding.settings));
  std::size_t k = entries_of(numbers.size(), coding.keep_ratio);
  const auto needed = [&](const PositionCost& cost) { return cost.bits + into.size() * value_bits; };
  select(coding, numbers, k, into);
  PositionCost cost = cost_of_positions(into);
  // Clustered positions take fewer bits than expected, so more entries fit.
  if (const std::size_t used = needed(cost); used > 0 && used + used / 16 < bits && into.size() == k) {
    k = std::min(numbers.size(), k * bits / used);
    select(coding, numbers, k, into);
    cost = cost_of_positions(into);
  }
  while (needed(cost) > bits) {
    const double share = static_cast<double>(bits) / static_cast<double>(needed(cost));
    k = std::min(into.size() - 1, static_cast<std::size_t>(static_cast<double>(into.size()) * share * 0.998));
    select(coding, numbers, k, into);
    keep_largest(numbers, k, into);  // select() may return one per tensor
    cost = cost_of_positions(into);
  }
  return cost;
}

template <class T>
void add_as(std::span<const std::uint32_t> positions, std::span<const float> values, double weight,
            const GradientView& sum) {
  const auto into = sum.as<T>();
  for (std::size_t i = 0; i < positions.size(); ++i)
    into[positions[i]] += static_cast<T>(weight * static_cast<double>(values[i]));
}

}  // namespace

std::uint64_t sparse_slot_bytes(const ContributionShape& shape, double keep_ratio, const Settings& settings) {
  const ValueCode code = value_code(settings);
  const std::size_t count = shape.parameters();
  const auto k = static_cast<double>(entries_of(count, keep_ratio));
  const double bits = expected_position_bits(k, static_cast<double>(count)) + k * bits_of(code);
  const std::size_t scales = has_scales(code) ? sizeof(float) * shape.tensors.size() : 0;
  return header_bytes + scales + static_cast<std::uint64_t>(std::ceil(bits / 8)) + 2;
}

template <class T>
void encode_sparse(const Coding& coding, std::span<const T> numbers, const Select<T>& select,
                   std::span<std::byte> slot) {
  const ValueCode code = value_code(*coding.settings);
  const std::size_t tensors = coding.shape->tensors.size();
  const std::size_t fixed = header_bytes + (has_scales(code) ? sizeof(float) * tensors : 0) + 1;
  RIVULET_CHECK(slot.size() > fixed, "a slot without room for an entry");
  std::vector<std::uint32_t> positions;
  const PositionCost cost = select_fitting(coding, numbers, select, 8 * (slot.size() - fixed), positions);
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

template void encode_sparse<float>(const Coding&, std::span<const float>, const Select<float>&,
                                   std::span<std::byte>);
template void encode_sparse<double>(const Coding&, std::span<const double>, const Select<double>&,
                                    std::span<std::byte>);

Status decode_add_sparse(const Coding& coding, std::span<const std::byte> slot, double weight,
                         const GradientView& sum) {
  const auto bad = [](const char* what) {
    return Error{ErrorCode::protocol, std::string("sparse slot: ") + what};
  };
  const ValueCode code = value_code(*coding.settings);
  BitReader in(slot);
  const std::size_t entries = in.get(32);
  const std::uint32_t position_code = in.get(8);
  if (in.get(24) != static_cast<std::uint32_t>(code) || !in.fine()) return bad("unexpected value code");
  if (position_code > static_cast<std::uint32_t>(PositionCode::varint)) return bad("unknown position code");
  std::vector<std::uint32_t> positions;
  if (!get_positions(in, static_cast<PositionCode>(position_code), entries, sum.count, positions))
    return bad("positions outside the model");
  in.align();
  std::vector<float> values(positions.size());
  const auto tensors = tensors_of(*coding.shape, positions);
  if (!get_values(in, tensors, coding.shape->tensors.size(), code, values)) return bad("non-finite values");
  sum.scalar == Scalar::f32 ? add_as<float>(positions, values, weight, sum)
                            : add_as<double>(positions, values, weight, sum);
  return ok();
}

std::uint64_t sparse_value_bytes(const Coding& coding, std::span<const std::byte> slot) {
  const ValueCode code = value_code(*coding.settings);
  const std::size_t entries = BitReader(slot).get(32);
  const std::size_t scales = has_scales(code) ? sizeof(float) * coding.shape->tensors.size() : 0;
  return scales + (entries * bits_of(code) + 7) / 8;
}

}  // namespace rivulet::sync
