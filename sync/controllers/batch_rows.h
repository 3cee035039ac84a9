#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sync/message/plan.h"

/// Rows of a step, shared between devices. Pure.
namespace rivulet::sync::policy {

/// What a device may be asked for.
struct RowBounds {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};

/// As many rows as `shares` say, in proportion, such that they are `total` and within their bounds: what one
/// device cannot take goes to the others, and what is left of whole rows to the largest remainders, the
/// lowest rank first. Less than `total` where all are at their most, more where all are at their least.
/// Shares of 0 stay at their least. Cost: devices^2 at most.
std::vector<std::uint32_t> share_rows(std::span<const double> shares, std::uint64_t total,
                                      std::span<const RowBounds> bounds);

/// One is half as much again as the other, or more.
bool differ_by_half(double one, double other);
/// Steps of N rows differ from those that `usual` is the mean of, by half or more: what was
/// averaged of those had another noise. `usual`: 0 at first; follows by and by, and at once where they are.
bool is_another_batch(double rows, double& usual);

/// All have their rows, or the round is held: devices that have them keep them and their gradients.
void wait_for_all(const FactsTable& table, RoundPlan& plan);

}  // namespace rivulet::sync::policy
