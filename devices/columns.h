#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/gradient_view.h"
#include "devices/first_rows.h"
#include "devices/model_state.h"

/// What a group knows of the columns of its rows, and what a model is rewritten by when that changes. Pure
/// functions of agreed numbers: the same on all devices and in a replay.
///
/// A device measures its rows as the model sees them, (x - shown_mean) / shown_deviation, and contributes
/// mean and mean square of that in the buffers of its contribution: averaged by rows, they are exactly those
/// of all rows of the round, also where devices' means differ. (Of a column that nobody knows yet it
/// contributes mean and variance; what devices differ by comes with the next agreement.) An agreed step folds
/// them into the columns, and what the model sees follows once it is off by a part of a deviation. The layers
/// beside the columns are rewritten in the same step, so that the model's function stays (as PopArt does for
/// outputs: van Hasselt et al., 2016).
namespace rivulet::devices {

/// What is measured of a round's rows, behind the model's own buffers: "measured.rows" [1], "measured.mean"
/// [columns], "measured.square" [columns], "measured.beyond" [columns].
struct Measured {
  double rows = 0;           ///< of this device since the group agreed; the others are means over these
  std::vector<double> mean;  ///< in units of what is shown; of a column at rest x - shown_mean; of an unknown
                             ///< one x itself
  std::vector<double> square;  ///< of the same; of an unknown column the variance; missing ones of it count
                               ///< as 0 in both
  std::vector<double> beyond;  ///< of the last rows beyond the limit: devices/outliers.h; of an unknown
                               ///< column the share of rows that have a value

  void read(const GradientView& from, std::size_t columns);
  void write(const GradientView& to) const;
  /// What is measured of an unknown column: devices whose rows lack it do not move it.
  [[nodiscard]] FirstRows first_rows(std::size_t column) const;
  void set_first_rows(std::size_t column, const FirstRows& values, double all_rows);
  [[nodiscard]] static std::size_t numbers(std::size_t columns) noexcept { return 1 + 3 * columns; }
};

/// So large a share of other values is a change of a column at rest: two of the recent rows.
inline constexpr double wake_share = 0.0075;
/// Deviations that a value counts as at most, once it counts unclipped.
inline constexpr double farthest = 1e9;
/// Of a column at rest, as it came: its square fits float32.
inline constexpr double farthest_at_rest = 1.8e19;

/// The layout of a model whose columns are measured: with the buffers of Measured.
ModelLayout with_columns(ModelLayout model, const NormalizedColumns& columns);
/// The numbers of Measured in an array that ends with the buffers of such a layout.
GradientView measured_in(const GradientView& numbers, const ModelLayout& layout);

/// The slot of a weight [outputs, features] without a bias, "skip.weight", which adds to the outputs that the
/// last layer gives; only beside a linear first and last layer.
std::optional<std::size_t> skip_over_features(const ModelLayout& layout);
/// The group knows something of one of them.
bool is_known(std::span<const Column> columns);

/// Below that part of its mean a column's deviation is the rounding of its numbers.
inline constexpr double least_relative_deviation = 1e-6;
inline constexpr double least_deviation = 1e-20;
/// Mean and variance as they are shown: 0 where the deviation is the rounding of the numbers.
double deviation_of(double mean, double variance);

/// How far columns have moved, as the layers beside them have to know it. A first layer W x + b becomes
/// W' = W ratio, b' = b + W shift, column by column; a last one W' = W gain, b' = b gain + offset, row by
/// row. A skip is both, with the last layer's b.
struct Rescaling {
  std::vector<double> ratio, shift;  ///< [features]
  std::vector<bool> woken;           ///< [features]: its weights start at 0
  std::vector<double> gain, offset;  ///< [targets]
  bool moves = false;                ///< a layer has something to follow
};
/// A column that was at rest wakes with weights of 0. One that jumped, by more than the limit at once, keeps
/// its weights: what they meant has gone.
Rescaling rescaling_between(std::span<const Column> before, std::span<const Column> after,
                            const NormalizedColumns& columns);

/// Rewrites an array [P], where the layout has the layers for it. Needs host-readable memory. Cost: a pass
/// over these.
void rescale(const GradientView& numbers, ArrayKind kind, const Rescaling& by, const ModelLayout& layout);

/// A stream has changed: what is known of columns, and the average of the parameters, are of fewer rows for a
/// window from now on.
void hurry_after_change(ModelState& state);
/// The N rows of an agreed step become part of the columns, and the model and what its
/// optimizer remembers follow; what was measured is 0 again. Errors: those of a device that has to copy.
Status follow_columns(ModelState& state, double rows, Device& device);

}  // namespace rivulet::devices
