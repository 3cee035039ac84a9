#include "sync/coding/gains.h"

#include <algorithm>
#include <cmath>

#include "sync/coding/energy.h"
#include "sync/coding/norm.h"

namespace rivulet::sync {

Gains gains_of(const GradientView& mine, double weight, const GradientView& kept) {
  EnergyHistogram all;
  all.add(mine, weight, kept);
  Gains gains;
  const auto shares = all.shares(gain_keeps);
  std::ranges::transform(shares, gains.shares.begin(),
                         [](double share) { return static_cast<float>(share); });
  gains.contribution_norm = std::sqrt(all.squares());
  gains.gradient_norm = gains.contribution_norm;
  if (kept.count == 0) return gains;
  gains.gradient_norm = weight * norm_of(mine);
  return gains;
}

}  // namespace rivulet::sync
