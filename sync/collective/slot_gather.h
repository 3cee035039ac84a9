#pragma once
#include <memory>

#include "sync/collective/aggregation.h"

namespace rivulet::sync {

/// The aggregation "gather" with messages. `early`: contributions leave before the plan is known, send()
/// before begin(); each peer's receive is posted a round ahead, so that a payload crosses the wire once and
/// asks nobody. Else begin() sends. Same bits.
std::unique_ptr<SpeculativeAggregation> make_slot_gather(bool early);

}  // namespace rivulet::sync
