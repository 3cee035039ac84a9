#include "sync/coding/positions.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace rivulet::sync {
namespace {

constexpr std::size_t gaps_of_block = 128;
constexpr unsigned parameter_bits = 5;

std::uint32_t gap_at(std::span<const std::uint32_t> ascending, std::size_t i) {
  return i == 0 ? ascending[0] : ascending[i] - ascending[i - 1] - 1;
}

std::size_t rice_bits(std::span<const std::uint32_t> ascending, std::size_t from, std::size_t to,
                      unsigned r) {
  std::size_t bits = (to - from) * (1 + r);
  for (std::size_t i = from; i < to; ++i) bits += gap_at(ascending, i) >> r;
  return bits;
}

/// The parameter that takes the fewest bits: near the logarithm of the mean gap.
unsigned best_parameter(std::span<const std::uint32_t> ascending, std::size_t from, std::size_t to) {
  const std::uint64_t span = std::uint64_t{ascending[to - 1]} - (from == 0 ? 0 : ascending[from - 1]);
  const std::uint64_t mean = span / (to - from);
  const unsigned near = mean == 0 ? 0 : static_cast<unsigned>(std::bit_width(mean)) - 1;
  unsigned best = near;
  std::size_t least = rice_bits(ascending, from, to, near);
  const auto consider = [&](unsigned r) {
    const std::size_t bits = rice_bits(ascending, from, to, r);
    if (bits >= least) return;
    least = bits;
    best = r;
  };
  if (near > 0) consider(near - 1);
  if (near < 30) consider(near + 1);
  return best;
}

template <class Visit>
void for_each_block(std::size_t entries, Visit visit) {
  for (std::size_t from = 0; from < entries; from += gaps_of_block)
    visit(from, std::min(from + gaps_of_block, entries));
}

std::size_t varint_bits(std::uint32_t gap) {
  return 8 * ((static_cast<std::size_t>(std::bit_width(gap | 1U)) + 6) / 7);
}

void put_rice(std::span<const std::uint32_t> ascending, std::size_t from, std::size_t to, BitWriter& out) {
  const unsigned r = best_parameter(ascending, from, to);
  out.put(r, parameter_bits);
  for (std::size_t i = from; i < to; ++i) {
    const std::uint32_t gap = gap_at(ascending, i);
    out.skip(gap >> r);
    out.put(1, 1);
    out.put(gap & ((1U << r) - 1), r);
  }
}

/// One gap, or what is larger than any.
std::uint64_t get_varint(BitReader& in) {
  std::uint64_t gap = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    const std::uint32_t bits = in.get(8);
    gap |= std::uint64_t{bits & 0x7fU} << shift;
    if ((bits & 0x80U) == 0) return gap;
  }
  return std::uint64_t{1} << 40U;
}

}  // namespace

PositionCost cost_of_positions(std::span<const std::uint32_t> ascending) {
  std::size_t rice = 0;
  for_each_block(ascending.size(), [&](std::size_t from, std::size_t to) {
    rice += parameter_bits + rice_bits(ascending, from, to, best_parameter(ascending, from, to));
  });
  std::size_t varint = 0;
  for (std::size_t i = 0; i < ascending.size(); ++i) varint += varint_bits(gap_at(ascending, i));
  return varint < rice ? PositionCost{PositionCode::varint, varint} : PositionCost{PositionCode::rice, rice};
}

double expected_position_bits(double entries, double count) {
  if (entries <= 0 || count <= 0) return 0;
  const double p = std::min(entries / count, 1.0);
  if (p >= 1) return count * (1 + parameter_bits / static_cast<double>(gaps_of_block));
  // A gap of at least 2^r has another zero with the probability of so many numbers without an entry.
  double least = 1e300;
  for (unsigned r = 0; r < 31; ++r) {
    const double none = std::pow(1 - p, std::exp2(r));
    least = std::min(least, 1 + r + none / (1 - none));
  }
  return entries * (least + parameter_bits / static_cast<double>(gaps_of_block)) + parameter_bits;
}

void put_positions(std::span<const std::uint32_t> ascending, PositionCode code, BitWriter& out) {
  if (code == PositionCode::rice) {
    for_each_block(ascending.size(),
                   [&](std::size_t from, std::size_t to) { put_rice(ascending, from, to, out); });
    return;
  }
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    std::uint32_t gap = gap_at(ascending, i);
    for (; gap >= 0x80; gap >>= 7U) out.put((gap & 0x7fU) | 0x80U, 8);
    out.put(gap, 8);
  }
}

bool get_positions(BitReader& in, PositionCode code, std::size_t entries, std::size_t count,
                   std::vector<std::uint32_t>& into) {
  into.clear();
  if (entries > count) return false;
  into.reserve(entries);
  std::uint64_t next = 0;
  unsigned r = 0;
  for (std::size_t i = 0; i < entries; ++i) {
    std::uint64_t gap = 0;
    if (code == PositionCode::varint) {
      gap = get_varint(in);
    } else {
      if (i % gaps_of_block == 0) r = in.get(parameter_bits);
      if (r > 30) return false;
      const auto most = static_cast<std::uint32_t>((count - 1) >> r);
      gap = std::uint64_t{in.unary(most)} << r;
      gap |= in.get(r);
    }
    next += gap;
    if (!in.fine() || next >= count) return false;
    into.push_back(static_cast<std::uint32_t>(next));
    ++next;
  }
  return true;
}

}  // namespace rivulet::sync
