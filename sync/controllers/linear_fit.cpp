#include "sync/controllers/linear_fit.h"

#include <algorithm>
#include <tuple>

namespace rivulet::sync::policy {

void LinearFit::add(double x, double seconds) {
  const double terms[] = {1, x, seconds, x * x, x * seconds};
  for (std::size_t i = 0; i < numbers; ++i) memory_[i] = habits_.kept * memory_[i] + terms[i];
}

double LinearFit::each() const {
  const auto [n, x, y, xx, xy] = std::tuple(memory_[0], memory_[1], memory_[2], memory_[3], memory_[4]);
  if (n <= 0) return 0;
  const double mean_x = x / n;
  const double mean_y = y / n;
  // Regularizes the slope, as if a size of 0 had been measured with the prior fixed part, at a small weight.
  const double doubt = habits_.doubt * mean_x;
  const double spread = xx / n - mean_x * mean_x + doubt * mean_x;
  const double together = xy / n - mean_x * mean_y + doubt * mean_y * (1 - habits_.fixed_part);
  const double slope = spread > 0 ? std::max(0.0, together / spread) : 0;
  return std::min(slope, mean_x > 0 ? mean_y / mean_x : 0);
}

double LinearFit::seconds(double x) const {
  if (memory_[0] <= 0) return 0;
  return std::max(0.0, memory_[2] / memory_[0] + each() * (x - memory_[1] / memory_[0]));
}

}  // namespace rivulet::sync::policy
