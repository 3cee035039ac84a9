#include "devices/first_rows.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "devices/spread.h"

namespace rivulet::devices {
namespace {

/// Range without outliers: `limit` standard deviations around the median, estimated from the quartiles. If
/// the quartiles are equal, a single other value is an outlier. `sorted` is not empty.
struct Range {
  double low, high;
};
Range usual_range(std::span<const float> sorted, double limit) {
  constexpr std::size_t too_few = 4;
  constexpr double quartiles_apart =
      1.349;  // interquartile range of a normal distribution, in standard deviations
  const std::size_t n = sorted.size();
  const Range all{sorted.front(), sorted.back()};
  if (n < too_few) return all;
  const double median = sorted[n / 2];
  const double spread = (sorted[3 * (n - 1) / 4] - double{sorted[(n - 1) / 4]}) / quartiles_apart;
  if (spread > 0)
    return {std::max(all.low, median - limit * spread), std::min(all.high, median + limit * spread)};
  const auto others = std::ranges::count_if(sorted, [&](float x) { return x != sorted[n / 2]; });
  return others == 1 ? Range{median, median} : all;
}

}  // namespace

void FirstRows::add(const FirstRows& more) {
  if (more.count == 0) return;
  const double weight = more.count / (count + more.count);
  merge_spread(mean, variance, more.mean, more.variance, weight);
  count += more.count;
}

FirstRows first_rows(const ColumnValues& values, double limit, std::vector<float>& sorted) {
  sorted.clear();
  for (std::size_t row = 0; row < values.rows; ++row)
    if (const float x = values.first[row * values.stride]; std::abs(x) <= largest_value) sorted.push_back(x);
  if (sorted.empty()) return {};
  std::ranges::sort(sorted);
  const auto [low, high] = usual_range(sorted, limit);
  const auto count = static_cast<double>(sorted.size());
  double sum = 0;
  for (const float x : sorted) sum += std::clamp<double>(x, low, high);
  const double mean = sum / count;
  double squares = 0;
  for (const float x : sorted) {
    const double offset = std::clamp<double>(x, low, high) - mean;
    squares += offset * offset;
  }
  return {count, mean, squares / count};
}

}  // namespace rivulet::devices
