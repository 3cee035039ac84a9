#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sync/coding/bit_stream.h"

/// Where the entries of a sparse vector lie, as few bits. Ascending positions become gaps (the numbers
/// between one and the next); a block of 128 gaps shares a Rice parameter (Rice, 1979), of 5 bits, or gaps
/// are varints of 7 bits, whichever takes less. Parameter 0 is the bitmap. Random positions take at most 1.05
/// times their entropy, clustered ones less. Pure; any thread.
namespace rivulet::sync {

enum class PositionCode : std::uint8_t { rice, varint };

/// Bits of them and how.
struct PositionCost {
  PositionCode code = PositionCode::rice;
  std::size_t bits = 0;
  std::vector<std::uint8_t> parameters;  ///< of each block
};
PositionCost cost_of_positions(std::span<const std::uint32_t> ascending);
/// What N random ones of `count` take, about.
double expected_position_bits(double entries, double count);
/// `how`: cost_of_positions() of the same.
void put_positions(std::span<const std::uint32_t> ascending, const PositionCost& how, BitWriter& out);
/// `entries` of them, ascending and below `count`. False: these bits are no such thing.
bool get_positions(BitReader& in, PositionCode code, std::size_t entries, std::size_t count,
                   std::vector<std::uint32_t>& into);

}  // namespace rivulet::sync
