#pragma once
#include <cstddef>
#include <cstdint>

#include "devices/model_state.h"

/// Separates two kinds of values beyond the limit: sensor faults, which are ignored, and changes of the
/// stream, which count. The only state is one value per column, Measured::beyond. As a measurement it is
/// averaged over devices, and it survives a restart.
///   - Different values a few standard deviations beyond the limit become a change at 5 % of the last 200
///   rows.
///   - Values too far out to be readings become a change at 10 % of the last 3000 rows: a broken sensor
///     recovers, a different unit stays.
///   - One repeated value is a code for "no value", or a switch. A code fills whole batches while it lasts; a
///     switch alternates. So only rows that share a batch with other values count toward the same 10 %.
///     Batches of one row cannot reveal a code.
/// `beyond` is a share: positive for the first kind, negative for the other two.
namespace rivulet::devices {

/// Values of one column in a batch: [rows], `stride` apart.
struct ColumnValues {
  const float* first;
  std::size_t rows, stride;
  [[nodiscard]] double at(std::size_t row) const noexcept { return first[row * stride]; }
};

/// Values of a batch beyond the limit.
struct Outliers {
  std::uint32_t count = 0;
  std::uint32_t absurd = 0;  ///< beyond the square of the limit
  bool one_value = false;    ///< several values, all equal
  bool close = false;        ///< several different values on one side, closer to each other than to the mean
  [[nodiscard]] bool doubtful() const noexcept {
    return one_value || (count > 0 && 2 * absurd >= count && !close);
  }
};
Outliers outliers_in(const ColumnValues& values, const Column& column, double limit);

/// Returns `beyond` after a batch of `rows` rows.
double follow_outliers(double beyond, const Outliers& found, double rows, const Column& column,
                       double looks_back);
/// Whether enough values lie beyond the limit to count as a change of the stream.
bool has_changed(double beyond);

/// Averaging window, in rows, for a positive `beyond`.
inline constexpr double recent_rows = 200;

}  // namespace rivulet::devices
