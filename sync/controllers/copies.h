#pragma once
#include <cstdint>
#include <vector>

#include "sync/policy/controller.h"

/// Copies of rows that devices send each other. Pure.
namespace rivulet::sync::policy {

/// Of a device, with one round's facts.
inline constexpr std::uint32_t copies_max = 256;

/// Ranks that `send` give all others copies of `share` of the rows of their steps; each has so many of them
/// in its steps for each own row. Batches stay as large as they were: own rows become fewer (SelSync,
/// equation 3).
void send_copies(const PolicyConfig& config, const std::vector<bool>& sends, double share, double per_row,
                 Schedule& next);

}  // namespace rivulet::sync::policy
