#pragma once
#include "sync/collective/aggregation.h"

namespace rivulet::testing {

/// The product's `gather` over a transport that reports each payload's progress on this process's KillBoard,
/// in pieces of 64 KiB, and delays payloads on request. All devices of a group must use it.
extern const sync::AggregationEntry watched_gather;

}  // namespace rivulet::testing
