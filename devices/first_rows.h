#pragma once
#include <vector>

#include "devices/outliers.h"

namespace rivulet::devices {

/// Mean and variance of the first values of an unknown column.
struct FirstRows {
  double count = 0;  ///< valid values
  double mean = 0;
  double variance = 0;

  /// Merges the values of `more`.
  void add(const FirstRows& more);
};

/// Larger values cannot be sensor readings. Squares of smaller ones fit float32.
inline constexpr double largest_value = 1e19;

/// Measures one column of a batch, without missing or too large values. Robust: clips values beyond `limit`
/// standard deviations around the median, with the deviation estimated from the quartiles. `sorted` is
/// scratch.
FirstRows first_rows(const ColumnValues& values, double limit, std::vector<float>& sorted);

}  // namespace rivulet::devices
