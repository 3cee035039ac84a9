#pragma once
#include <cstdint>
#include <vector>

#include "sync/policy/controller.h"

/// Injected rows that devices send each other. Pure.
namespace rivulet::sync::policy {

/// Maximum number of injected rows per device and round.
inline constexpr std::uint32_t injected_rows_max = 256;

/// Ranks in `sends` send `share` of their rows to all others. Each device computes `per_row` injected rows
/// per row of its own stream. Batches keep their size, with fewer rows of the local stream (SelSync, equation
/// 3).
void inject_rows(const PolicyConfig& config, const std::vector<bool>& sends, double share, double per_row,
                 Schedule& next);

}  // namespace rivulet::sync::policy
