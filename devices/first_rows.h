#pragma once
#include <vector>

#include "devices/outliers.h"

namespace rivulet::devices {

/// Mean and variance of values that nothing is known of yet.
struct FirstRows {
  double count = 0;  ///< values that are not missing
  double mean = 0;
  double variance = 0;

  /// With those that `more` are of.
  void add(const FirstRows& more);
};

/// Of one column in a batch, measured robustly: beyond `limit` deviations around the median, as the quartiles
/// say, values are clipped. `sorted` is scratch.
FirstRows first_rows(const ColumnValues& values, double limit, std::vector<float>& sorted);

}  // namespace rivulet::devices
