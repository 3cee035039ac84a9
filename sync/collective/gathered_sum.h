#pragma once
#include <memory>

#include "sync/collective/aggregation.h"

namespace rivulet::sync {

/// The aggregation "gather" over a transport that gathers: everyone tells its encoded payload, and the sum of
/// all, decoded in rank order, is made once. Same bits and times as with messages.
std::unique_ptr<Aggregation> make_gathered_sum();

}  // namespace rivulet::sync
