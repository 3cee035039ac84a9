#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/gradient_view.h"
#include "devices/first_rows.h"
#include "devices/model_state.h"

/// Agreed statistics of the columns of a group's rows, and the rewriting of a model when they change. Pure
/// functions of agreed values: the same on all devices and in a replay.
///
/// A device measures its rows as the model sees them, (x - shown_mean) / shown_deviation. It contributes
/// their mean and mean square in the buffers of its contribution. Weighted by rows, these are exact for all
/// rows of the round, even where devices' means differ. (For an unknown column it contributes mean and
/// variance; differences between devices enter with the next synchronization.) An agreed step folds them into
/// the columns. The shown values follow once they are off by a fraction of a deviation. The same step
/// rewrites the adjacent layers, so that the model's function stays the same (as PopArt does for outputs: van
/// Hasselt et al., 2016).
namespace rivulet::devices {

/// Measurements of a round's rows, after the model's own buffers: "measured.rows" [1], "measured.mean"
/// [columns], "measured.square" [columns], "measured.beyond" [columns].
struct Measured {
  /// Rows of this device since the last synchronization. The other measurements are means over these.
  double rows = 0;
  /// Means, in shown standard deviations; for a column at rest of x - shown_mean, for an unknown column of x.
  std::vector<double> mean;
  /// Mean squares in the same units; for an unknown column the variance. Missing values of an unknown column
  /// count as 0 in both.
  std::vector<double> square;
  /// Share of recent rows beyond the limit (devices/outliers.h); in unknown columns, of rows with a value.
  std::vector<double> beyond;

  void read(const GradientView& from, std::size_t columns);
  void write(const GradientView& to) const;
  /// Measurements of an unknown column. Devices whose rows lack it do not change it.
  [[nodiscard]] FirstRows first_rows(std::size_t column) const;
  void set_first_rows(std::size_t column, const FirstRows& values, double all_rows);
  [[nodiscard]] static std::size_t numbers(std::size_t columns) noexcept { return 1 + 3 * columns; }
};

/// Share of recent rows with other values that wakes a column at rest: reached by two rows.
inline constexpr double wake_share = 0.0075;
/// Maximum distance, in standard deviations, of a value that counts unclipped.
inline constexpr double farthest = 1e9;
/// The same for a column at rest, in raw units. Its square fits float32.
inline constexpr double farthest_at_rest = 1.8e19;

/// Adds the buffers of Measured to the layout of a model.
ModelLayout with_columns(ModelLayout model, const NormalizedColumns& columns);
/// Returns the Measured part of an array that ends with the buffers of a layout from with_columns().
GradientView measured_in(const GradientView& numbers, const ModelLayout& layout);

/// Returns the slot of "skip.weight" [outputs, features], a layer without bias that adds to the outputs of
/// the last layer. Only for models with a linear first and last layer.
std::optional<std::size_t> skip_over_features(const ModelLayout& layout);
/// Whether any column has agreed statistics.
bool is_known(std::span<const Column> columns);

/// Minimum deviation relative to the mean; a smaller one is rounding error.
inline constexpr double least_relative_deviation = 1e-6;
inline constexpr double least_deviation = 1e-20;
/// Returns the deviation to show: 0 where it is only rounding error.
double deviation_of(double mean, double variance);

/// Change of the shown columns, in the form that the adjacent layers need. A first layer W x + b becomes W' =
/// W ratio, b' = b + W shift, column by column; a last layer W' = W gain, b' = b gain + offset, row by row.
/// Both changes apply to a skip layer, which shares the last layer's b.
struct Rescaling {
  std::vector<double> ratio, shift;  ///< [features]
  std::vector<bool> woken;           ///< [features]: its weights start at 0
  std::vector<double> gain, offset;  ///< [targets]
  bool moves = false;                ///< whether a layer must change
};
/// Computes the change between two sets of columns. A column that wakes from rest gets weights of 0. A column
/// that jumped by more than the limit keeps its weights, since their meaning is lost.
Rescaling rescaling_between(std::span<const Column> before, std::span<const Column> after,
                            const NormalizedColumns& columns);

/// Rewrites an array [P] in the layers next to the columns. Needs host-readable memory. Cost: one pass over
/// these layers.
void rescale(const GradientView& numbers, ArrayKind kind, const Rescaling& by, const ModelLayout& layout);

/// Adapts to a change of the stream: column windows are shorter for the next window of rows, and the average
/// of the parameters starts again.
void hurry_after_change(ModelState& state);
/// Folds the measurements of an agreed step of `rows` rows into the columns, then zeroes all but `beyond`.
/// Rewrites the model and its optimizer arrays to match. Errors: from copies between host and device.
Status follow_columns(ModelState& state, double rows, Device& device);

}  // namespace rivulet::devices
