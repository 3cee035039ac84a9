#pragma once
#include "sync/collective/aggregation.h"

namespace rivulet::testing {

/// The product's own `gather` over wires that tell on the KillBoard of this process how far each payload is,
/// in pieces of 64 KiB, and hold payloads back when the board says so. All devices of a group must use it.
extern const sync::AggregationEntry watched_gather;

}  // namespace rivulet::testing
