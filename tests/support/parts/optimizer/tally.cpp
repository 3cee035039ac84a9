// Counts the rows in an agreed mean (parts/model/tally.cpp): of n rows it is 1/n for each row that was in it
// once, the minimum above zero.
#include <cmath>

#include "core/clock.h"
#include "devices/optimizer.h"
#include "tests/support/kill_board.h"

namespace rivulet::devices {
namespace {

constexpr RememberedArray arrays[] = {{"momentum", ArrayKind::delta}};

void count(const OptimizerStep& step) {
  static const auto page = testing::KillBoard::of_this_process();
  const auto mean = step.gradient.as<float>();
  float once = 0;
  for (const float share : mean)
    if (share > 0 && (once == 0 || share < once)) once = share;
  const auto counts = step.parameters.as<float>();
  for (std::size_t k = 0; k < counts.size() && once > 0; ++k) counts[k] += std::round(mean[k] / once);
  if (page->applied++ == 0) page->first_applied_ns = RealClock().now().time_since_epoch().count();
}

}  // namespace

extern const OptimizerEntry optimizer_tally;
const OptimizerEntry optimizer_tally{"tally", "test only: counts every row", {}, arrays, &count};

}  // namespace rivulet::devices
