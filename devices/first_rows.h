#pragma once
#include <vector>

#include "devices/outliers.h"

namespace rivulet::devices {

/// Mean and variance of values that nothing is known of yet.
struct FirstRows {
  double count = 0;  ///< values that count
  double mean = 0;
  double variance = 0;

  /// With those that `more` are of.
  void add(const FirstRows& more);
};

/// Values beyond are none of a sensor; squares of those within fit float32.
inline constexpr double largest_value = 1e19;

/// Of one column in a batch, without values that are missing or too large, measured robustly: beyond `limit`
/// deviations around the median, as the quartiles say, values are clipped. `sorted` is scratch.
FirstRows first_rows(const ColumnValues& values, double limit, std::vector<float>& sorted);

}  // namespace rivulet::devices
