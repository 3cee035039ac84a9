#pragma once
#include "sync/collective/transport.h"

namespace rivulet::testing {

/// Wires that break for their owner when it sends rows (Lane::moves) for the third time: its end is closed as
/// by a lost link, so that the others notice, too.
sync::Connect cut_third_move(sync::Connect usual);

}  // namespace rivulet::testing
