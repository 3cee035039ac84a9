#pragma once
#include <cstdint>

#include "sync/collective/transport.h"

namespace rivulet::testing {

enum class MoveFault : std::uint8_t {
  none,
  cut,             ///< the sender's end is closed as by a lost link, so that the others notice, too
  infinite,        ///< the first number of the first row is no number any more
  strange_target,  ///< the last row has a label that no class has
};
/// Wires on which that happens when their owner sends rows (Lane::moves) for the third time.
sync::Connect spoil_third_move(sync::Connect usual, MoveFault fault);

}  // namespace rivulet::testing
