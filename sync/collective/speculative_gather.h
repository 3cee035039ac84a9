#pragma once
#include <memory>

#include "sync/collective/aggregation.h"

namespace rivulet::sync {

/// "gather" for contributions that leave before the plan is known: payloads that are weighted by who receives
/// them, added in rank order. Each peer's receive is posted a round ahead, so that a payload crosses the wire
/// once and asks nobody. Same bits as the aggregation "gather".
std::unique_ptr<SpeculativeAggregation> make_speculative_gather();

}  // namespace rivulet::sync
