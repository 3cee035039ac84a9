#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "sync/message/plan.h"

/// Splits the rows of a step between devices. Pure.
namespace rivulet::sync::policy {

/// Bounds of the rows that may be requested from a device.
struct RowBounds {
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};

/// Splits `total` rows in proportion to `shares`, within the bounds. Rows above a device's maximum go to the
/// others. Remaining whole rows go to the largest remainders, lowest rank first. Sums to less than `total` if
/// all are at their maximum, to more if all are at their minimum. Shares of 0 stay at the minimum. Cost: up
/// to devices^2.
std::vector<std::uint32_t> share_rows(std::span<const double> shares, std::uint64_t total,
                                      std::span<const RowBounds> bounds);

/// Returns whether one value is at least 1.5 times the other.
bool differ_by_half(double one, double other);
/// Returns whether a step's rows differ from the running mean `usual` by half or more, so that averages over
/// earlier steps had a different noise level. `usual`: 0 at first. Follows slowly, or immediately if the
/// result is true.
bool is_another_batch(double rows, double& usual);

/// Defers the round until all devices have their rows. Devices keep rows and gradients until then.
void wait_for_all(const FactsTable& table, RoundPlan& plan);

}  // namespace rivulet::sync::policy
