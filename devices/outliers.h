#pragma once
#include <cstddef>
#include <cstdint>

#include "devices/model_state.h"

/// Whether values beyond the limit are faults of a sensor, which count for nothing, or a change of the
/// stream, which counts. All it remembers is one number for each column, Measured::beyond: it is averaged
/// over devices, as all that they measure, and it survives a restart.
///   - A few deviations beyond the limit, and different ones, are a change soon: at 5 % of the last 200 rows.
///   - So far out that they are no readings, they are one at 10 % of the last 3000: a broken sensor comes
///   back,
///     another unit stays.
///   - One and the same value again and again is a code for "nothing", or a switch. A code comes alone, for
///   as
///     long as it lasts; a switch goes to and fro. So only rows count that share their batch with others,
///     toward the same 10 %. In batches of one row nothing is known as a code.
/// The number is a share: of the former, above 0; of the two latter, below.
namespace rivulet::devices {

/// Values of one column in a batch: [rows], `stride` apart.
struct ColumnValues {
  const float* first;
  std::size_t rows, stride;
  [[nodiscard]] double at(std::size_t row) const noexcept { return first[row * stride]; }
};

/// Those of them that lie beyond the limit.
struct Outliers {
  std::uint32_t count = 0;
  std::uint32_t absurd = 0;  ///< beyond the square of the limit
  bool one_value = false;    ///< there are several, and all are the same
  bool close = false;        ///< several on one side, different ones, closer to each other than to the mean
  [[nodiscard]] bool doubtful() const noexcept {
    return one_value || (count > 0 && 2 * absurd >= count && !close);
  }
};
Outliers outliers_in(const ColumnValues& values, const Column& column, double limit);

/// `beyond` after a batch of N rows.
double follow_outliers(double beyond, const Outliers& found, double rows, const Column& column,
                       double looks_back);
/// Enough lie beyond the limit: the stream has changed.
bool has_changed(double beyond);

/// Rows that `beyond` looks back on, as long as it is above 0.
inline constexpr double recent_rows = 200;

}  // namespace rivulet::devices
