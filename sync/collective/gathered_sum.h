#pragma once
#include <memory>

#include "sync/collective/aggregation.h"

namespace rivulet::sync {

/// The aggregation "gather" over a transport that gathers: everyone tells its encoded payload, and the sum of
/// all, decoded in rank order, is made once. Same bits and times as with messages. by_receiver: for
/// contributions that leave before the plan is known; send() before begin().
std::unique_ptr<SpeculativeAggregation> make_gathered_sum(Weighing weighing);

}  // namespace rivulet::sync
