#include "devices/outliers.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rivulet::devices {
namespace {

constexpr double doubt_rows = 3000;
/// With fewer rows, a column may not have been in all of its long-lasting states yet. So no value counts as a
/// missing-value code, and the period of doubt is shorter.
constexpr double few_known = 1000;
constexpr double doubt_rows_of_few = 1500;
constexpr double doubt_share = 0.1;
constexpr double change_share = 0.05;
/// Fewer values of a different kind do not end the doubt.
constexpr std::uint32_t few = 3;

double averaged(double share, double count, double rows, double looks_back) {
  return share + (count - share * rows) / std::max(rows, looks_back);
}

}  // namespace

Outliers outliers_in(const ColumnValues& values, const Column& column, double limit) {
  Outliers found;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  for (std::size_t row = 0; row < values.rows; ++row) {
    const double x = values.at(row);
    const double away = std::abs(x - column.shown_mean) / column.shown_deviation;
    if (!(away > limit)) continue;
    least = std::min(least, x);
    most = std::max(most, x);
    ++found.count;
    found.absurd += away > limit * limit ? 1 : 0;
  }
  found.one_value = found.count > 1 && least == most;
  const double mean = column.shown_mean;
  const double nearest = least > mean ? least - mean : mean - most;
  found.close = found.count >= few && !found.one_value && most - least < nearest / 2;
  return found;
}

double follow_outliers(double beyond, const Outliers& found, double rows, const Column& column,
                       double looks_back) {
  const bool goes_on = beyond < 0 && found.count < few;
  if (!found.doubtful() && !goes_on) return averaged(std::max(0.0, beyond), found.count, rows, looks_back);
  const bool known = column.rows >= few_known;
  const double others = rows - found.count;
  const double count = found.one_value && known ? std::min<double>(found.count, others) : found.count;
  return -averaged(std::max(0.0, -beyond), count, rows, known ? doubt_rows : doubt_rows_of_few);
}

bool has_changed(double beyond) {
  return beyond > change_share || -beyond > doubt_share;
}

}  // namespace rivulet::devices
