#include "sync/coding/positions.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "core/vector_code.h"

namespace rivulet::sync {
namespace {

constexpr std::size_t gaps_of_block = 128;
constexpr unsigned parameter_bits = 5;
constexpr unsigned parameter_most = 30;

std::uint32_t gap_at(std::span<const std::uint32_t> ascending, std::size_t i) {
  return i == 0 ? ascending[0] : ascending[i] - ascending[i - 1] - 1;
}

/// The gaps of one block.
struct Block {
  Block(std::span<const std::uint32_t> ascending, std::size_t from, std::size_t to) : count(to - from) {
    gaps[0] = gap_at(ascending, from);
    for (std::size_t i = 1; i < count; ++i) gaps[i] = ascending[from + i] - ascending[from + i - 1] - 1;
  }
  std::array<std::uint32_t, gaps_of_block> gaps;
  std::size_t count;
};

/// Sums of quotients for the parameters r - 1, r and r + 1, without the bits common to all gaps.
struct Quotients {
  std::uint64_t below = 0, at = 0, above = 0;
};
RIVULET_VECTOR_CODE Quotients quotients(const std::uint32_t* gaps, std::size_t count, unsigned r) {
  Quotients sums;
  const unsigned below = r > 0 ? r - 1 : 0;
  for (std::size_t i = 0; i < count; ++i) {
    sums.below += gaps[i] >> below;
    sums.at += gaps[i] >> r;
    sums.above += gaps[i] >> (r + 1);
  }
  return sums;
}

struct Parameter {
  unsigned r = 0;
  std::size_t bits = 0;  ///< bits of the whole block
};

/// Returns the parameter with the fewest bits, which is near the logarithm of the mean gap.
Parameter best_parameter(const Block& block) {
  const std::uint64_t span =
      std::accumulate(block.gaps.begin(), block.gaps.begin() + block.count, std::uint64_t{block.count});
  const std::uint64_t mean = span / block.count;
  const unsigned near = std::min(static_cast<unsigned>(std::bit_width(mean)) - 1, parameter_most);
  const Quotients sums = quotients(block.gaps.data(), block.count, near);
  Parameter best{near, block.count * (1 + near) + sums.at};
  const auto consider = [&](unsigned r, std::uint64_t sum) {
    const std::size_t bits = block.count * (1 + r) + sum;
    if (bits < best.bits) best = {r, bits};
  };
  if (near > 0) consider(near - 1, sums.below);
  if (near < parameter_most) consider(near + 1, sums.above);
  best.bits += parameter_bits;
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

void put_rice(const Block& block, unsigned r, BitWriter& out) {
  constexpr unsigned at_once = 57;
  out.put(r, parameter_bits);
  for (std::size_t i = 0; i < block.count; ++i) {
    const std::uint32_t gap = block.gaps[i];
    const std::uint32_t zeros = gap >> r;
    const std::uint64_t rest = 1 | std::uint64_t{gap & ((1U << r) - 1)} << 1U;
    if (zeros + 1 + r <= at_once) {
      out.put_long(rest << zeros, zeros + 1 + r);
    } else {
      out.skip(zeros);
      out.put_long(rest, 1 + r);
    }
  }
}

/// Returns one gap, or a value above every valid gap.
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
  PositionCost rice;
  rice.parameters.reserve(ascending.size() / gaps_of_block + 1);
  for_each_block(ascending.size(), [&](std::size_t from, std::size_t to) {
    const Parameter best = best_parameter(Block(ascending, from, to));
    rice.bits += best.bits;
    rice.parameters.push_back(static_cast<std::uint8_t>(best.r));
  });
  if (rice.bits <= 8 * ascending.size()) return rice;  // the minimum for varints
  std::size_t varint = 0;
  for (std::size_t i = 0; i < ascending.size(); ++i) varint += varint_bits(gap_at(ascending, i));
  return varint < rice.bits ? PositionCost{PositionCode::varint, varint, {}} : rice;
}

double expected_position_bits(double entries, double count) {
  if (entries <= 0 || count <= 0) return 0;
  const double p = std::min(entries / count, 1.0);
  if (p >= 1) return count * (1 + parameter_bits / static_cast<double>(gaps_of_block));
  // A gap takes a further zero with the probability that 2^r elements have no entry. Uses products only,
  // because slot sizes depend on the result and must be the same on every machine.
  double least = 1e300;
  double none = 1 - p;
  for (unsigned r = 0; r < 31; ++r, none *= none) least = std::min(least, 1 + r + none / (1 - none));
  return entries * (least + parameter_bits / static_cast<double>(gaps_of_block)) + parameter_bits;
}

void put_positions(std::span<const std::uint32_t> ascending, const PositionCost& how, BitWriter& out) {
  if (how.code == PositionCode::rice) {
    for_each_block(ascending.size(), [&](std::size_t from, std::size_t to) {
      put_rice(Block(ascending, from, to), how.parameters[from / gaps_of_block], out);
    });
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
      if (r > parameter_most) return false;
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
