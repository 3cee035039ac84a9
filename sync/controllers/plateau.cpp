#include "sync/controllers/plateau.h"

#include <algorithm>
#include <cmath>

#include "sync/policy/coherence.h"

namespace rivulet::sync::policy {
namespace {

enum PlateauPlace : std::size_t {
  rows_at,   ///< rows of the incomplete mean
  sum_at,    ///< sum of their losses
  first_at,  ///< loss of the very first rows, limited to first_at_most times the first mean
  best_at,   ///< the lowest mean since the last restart; 0: none yet
  stale_at,  ///< means since the best one
};

constexpr double least_rows = 4096;
constexpr double most_rows = 32768;
constexpr double exact = 0.05;            ///< relative deviation of a mean that is required
constexpr double worth = 0.05;            ///< share of the best mean: smaller falls do not count
constexpr double negligible = 1.0 / 256;  ///< share of the first loss: smaller falls do not count
constexpr double worse = 0.25;            ///< share of the best mean: a larger rise restarts
constexpr double worse_deviations = 4;    ///< standard deviations of the mean: a larger rise restarts
constexpr double means_in_a_row = 4;
constexpr double means_at_first = 16;
constexpr double fallen = 0.9;        ///< a mean below this share of the first loss has fallen
constexpr double first_at_most = 64;  ///< limit of the first loss, times the first mean

}  // namespace

void Plateau::add(double loss_sum, double rows, double noise) {
  loss_sum = finite(loss_sum);
  if (!(rows > 0) || !(loss_sum >= 0)) return;
  if (!(memory_[first_at] > 0)) {
    memory_[first_at] = loss_sum / rows;
    return;  // not part of any mean
  }
  memory_[rows_at] = std::clamp(memory_[rows_at], 0.0, most_rows) + rows;
  memory_[sum_at] = finite(std::max(0.0, memory_[sum_at]) + loss_sum);
  noise = std::max(0.0, finite(noise));
  if (memory_[rows_at] < std::clamp(noise / (exact * exact), least_rows, most_rows)) return;
  look_at(memory_[sum_at] / memory_[rows_at], memory_[rows_at], noise);
  memory_[rows_at] = memory_[sum_at] = 0;
}

void Plateau::look_at(double mean, double rows, double noise) {
  const double best = memory_[best_at];
  // The first loss may be meaningless: targets far from 0, features not yet normalized.
  if (best == 0) memory_[first_at] = std::min(memory_[first_at], first_at_most * mean);
  const double least = nothing();
  const double rise = std::max(worse, worse_deviations * std::sqrt(noise / rows));
  const bool falls = mean < (1 - worth) * best - least / 4;
  const bool rises = mean > (1 + rise) * best + least;
  const bool anew = best == 0 || falls || rises;
  if (anew) memory_[best_at] = mean;
  memory_[stale_at] = anew ? 0 : std::clamp(memory_[stale_at], 0.0, means_at_first) + 1;
  if (mean <= least) memory_[stale_at] = means_in_a_row;
}

double Plateau::nothing() const {
  return negligible * std::max(0.0, memory_[first_at]);
}

void Plateau::restart() {
  memory_[rows_at] = memory_[sum_at] = memory_[best_at] = memory_[stale_at] = 0;
}

bool Plateau::reached() const {
  const bool has_fallen = memory_[best_at] < fallen * memory_[first_at];
  return memory_[stale_at] >= (has_fallen ? means_in_a_row : means_at_first);
}

}  // namespace rivulet::sync::policy
