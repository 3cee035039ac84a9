#pragma once
#include <cmath>
#include <span>

#include "sync/round/facts.h"

namespace rivulet::sync::policy {

/// Of a number that anybody may have sent: 0 if it is none.
inline double finite(double number) {
  return std::isfinite(number) ? number : 0;
}

/// How far a device has come since the group agreed last.
struct Movement {
  double rows = 0;                ///< that it comes from
  std::span<const float> sketch;  ///< of the movement: the same numbers of every device
  double signal = 0;              ///< inner product of the movements of its odd and of its even steps
  double noise = 0;               ///< a quarter of their squared distance
};

/// Whether all move the same way: |sum rho D|^2 / sum rho |D|^2 of movements D with shares rho of the rows,
/// over what that would be if all devices drew from one stream, each with the noise of its batches. About 1:
/// streams are alike. Well below: they differ. 0: not known. Numbers that are not finite count as 0. Source:
/// docs/adr/0031.
double coherence(std::span<const Movement> movements);

/// Relative variance of the loss of one row, from how much it differs between devices and from how far it has
/// risen above what is usual; 0: not known. Few rows that are far off make most of a small loss, so that it
/// jumps without a reason. A loss that falls is learning, and one that has risen by more than half is no
/// noise.
double loss_variance(const FactsTable& table, double loss, double usual);

/// log2(x) of x >= 1, linear between powers of two: by exact operations alone, so that all devices come to
/// the same bits whatever library and processor they have. At most 0.09 below.
double doublings(double x);

}  // namespace rivulet::sync::policy
