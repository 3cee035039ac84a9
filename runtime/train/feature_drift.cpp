#include "runtime/train/feature_drift.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rivulet::runtime {

double FeatureDrift::Spread::deviation() const noexcept {
  return std::max(std::sqrt(variance), rounding * std::abs(mean));
}

void FeatureDrift::follow(Spread& known, double mean, double variance, double weight) {
  const double distance = mean - known.mean;
  known.mean += weight * distance;
  known.variance = (1 - weight) * known.variance + weight * (variance + (1 - weight) * distance * distance);
}

void FeatureDrift::add(const float* values, std::size_t rows, std::size_t stride) {
  const bool bounded = rows_ >= recent_rows && usual_.deviation() > 0;
  const double reach = clipped_at * usual_.deviation();
  double count = 0;
  double sum = 0;
  double squares = 0;
  double as_they_came = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const double x = values[row * stride];
    if (std::isnan(x)) continue;
    const double offset = x - usual_.mean;
    const double within = bounded ? std::clamp(offset, -reach, reach) : offset;
    count += 1;
    sum += within;
    squares += within * within;
    as_they_came += offset;
  }
  if (count == 0) return;
  count_still(values, rows, stride);
  const double mean = usual_.mean + sum / count;
  const double variance = std::max(0.0, squares / count - sum / count * (sum / count));
  const double shown = usual_.mean + as_they_came / count;
  const auto weight = [&](double window) { return count / (std::min(rows_, window) + count); };
  now_ += weight(recent_rows) * (shown - now_);
  follow(recent_, mean, variance, weight(recent_rows));
  follow(usual_, mean, variance, weight(usual_rows));
  rows_ += count;
  until_next_ -= count;
  if (until_next_ <= 0) {
    before_ = rows_ <= 2 * rows_before ? usual_ : lately_;
    lately_ = usual_;
    until_next_ = rows_before;
  }
  const double from = distance();
  moved_ = moved_ ? from > far / 2 : from > far;
}

void FeatureDrift::count_still(const float* values, std::size_t rows, std::size_t stride) {
  for (std::size_t row = 0; row < rows; ++row) {
    const float x = values[row * stride];
    if (std::isnan(x)) continue;
    if (x == last_ && still_ > 0) {
      still_ += 1;
      continue;
    }
    turns_ += still_ > 0 ? 1 : 0;
    longest_ = std::max(longest_, still_);
    still_ = 1;
    last_ = x;
  }
}

double FeatureDrift::distance() const noexcept {
  if (rows_ < rows_judged || before_.deviation() == 0) return 0;
  return std::abs(recent_.mean - before_.mean) / before_.deviation();
}

bool FeatureDrift::stuck() const noexcept {
  return turns_ >= enough_turns && rows_ >= 2 * rows_before &&
         still_ >= std::max(rows_before, much_longer * longest_);
}

FeatureDrift::Farthest FeatureDrift::farthest(const float* values, std::size_t rows,
                                              std::size_t stride) const noexcept {
  Farthest found;
  double most = -1;
  for (std::size_t row = 0; row < rows; ++row) {
    const float x = values[row * stride];
    const double away = std::abs(x - usual_.mean);
    found.beyond += away > clipped_at * usual_.deviation() ? 1 : 0;
    if (!(away > most)) continue;
    most = away;
    found.value = x;
  }
  return found;
}

std::string FeatureDrift::usual() const {
  return fmt::format("{:.4g} ± {:.2g}", usual_.mean, usual_.deviation());
}

std::string FeatureDrift::describe() const {
  return fmt::format("{:.4g} now, before {:.4g} ± {:.2g}", now_, before_.mean, before_.deviation());
}

}  // namespace rivulet::runtime
