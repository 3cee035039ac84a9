#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sync/coding/bit_stream.h"

/// Compact coding of a sparse vector's positions. Ascending positions become gaps (elements between two
/// entries). A block of 128 gaps shares a Rice parameter (Rice, 1979) of 5 bits, or gaps are varints of 7
/// bits, whichever is smaller. Parameter 0 gives a bitmap. Random positions take up to 1.05 times their
/// entropy, clustered ones less. Pure; any thread.
namespace rivulet::sync {

enum class PositionCode : std::uint8_t { rice, varint };

/// Size and code of a set of positions.
struct PositionCost {
  PositionCode code = PositionCode::rice;
  std::size_t bits = 0;
  std::vector<std::uint8_t> parameters;  ///< Rice parameter of each block
};
PositionCost cost_of_positions(std::span<const std::uint32_t> ascending);
/// Returns the approximate bits of `entries` random positions below `count`.
double expected_position_bits(double entries, double count);
/// `how`: the result of cost_of_positions() for the same positions.
void put_positions(std::span<const std::uint32_t> ascending, const PositionCost& how, BitWriter& out);
/// Reads `entries` ascending positions below `count`. Returns false if the bits are invalid.
bool get_positions(BitReader& in, PositionCode code, std::size_t entries, std::size_t count,
                   std::vector<std::uint32_t>& into);

}  // namespace rivulet::sync
