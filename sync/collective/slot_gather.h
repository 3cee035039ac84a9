#pragma once
#include <memory>

#include "sync/collective/aggregation.h"

namespace rivulet::sync {

/// Creates the collective "gather" with messages. `early`: contributions are sent before the plan is known,
/// with send() before begin(). Each receive is posted a round ahead, so that a payload needs no handshake.
/// Otherwise begin() sends. Both give the same bits.
std::unique_ptr<SpeculativeAggregation> make_slot_gather(bool early);

}  // namespace rivulet::sync
