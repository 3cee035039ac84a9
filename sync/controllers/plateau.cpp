#include "sync/controllers/plateau.h"

#include <algorithm>
#include <cmath>

#include "sync/policy/coherence.h"

namespace rivulet::sync::policy {
namespace {

enum PlateauPlace : std::size_t {
  rows_at,   ///< of the mean that is not complete yet
  sum_at,    ///< ... their loss
  first_at,  ///< loss of the first rows of all, if it is not far above the first mean
  best_at,   ///< the lowest mean since the last restart; 0: there is none
  stale_at,  ///< means since then
};

constexpr double least_rows = 4096;
constexpr double most_rows = 32768;
constexpr double exact = 0.05;            ///< relative deviation of a mean that is asked for
constexpr double worth = 0.05;            ///< of the best mean: a smaller fall is none
constexpr double negligible = 1.0 / 256;  ///< of the first loss, same
constexpr double worse = 0.25;            ///< of the best mean: a rise by more is one
constexpr double worse_deviations = 4;    ///< ... of what means vary by
constexpr double means_in_a_row = 4;
constexpr double means_at_first = 16;
constexpr double fallen = 0.9;        ///< of the first loss
constexpr double first_at_most = 64;  ///< times the first mean

}  // namespace

void Plateau::add(double loss_sum, double rows, double noise) {
  loss_sum = finite(loss_sum);
  if (!(rows > 0) || !(loss_sum >= 0)) return;
  if (!(memory_[first_at] > 0)) {
    memory_[first_at] = loss_sum / rows;
    return;  // it is in no mean
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
  // A model may begin with a loss that says nothing: of targets far from 0, of features as they come.
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
