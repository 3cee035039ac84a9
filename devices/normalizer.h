#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "devices/columns.h"
#include "devices/trainer.h"

namespace rivulet::devices {

/// Returns a trainer whose model sees normalized columns: (x - shown_mean) / shown_deviation by the state's
/// columns, clipped at the limit. Columns are the features and, with mse, the targets, whose predictions are
/// scaled back. Losses of normalized targets are in units of their variance: predicting the mean has loss 1.
/// The trainer also measures the columns (devices/columns.h).
///   - Before a column has agreed statistics, a device normalizes by its own rows: the model never trains on
///     raw rows. These are measured robustly, batch by batch (devices/first_rows.h).
///   - A value beyond the limit is clipped and counted. A value beyond the square of the limit is not a
///     reading: the model sees the mean. Many of them may be a change of the stream: devices/outliers.h.
///   - A missing value (NaN) becomes the mean.
/// Sums are in double. Memory: a copy of the batch. Cost: one pass over it.
std::unique_ptr<Trainer> make_normalizing(std::unique_ptr<Trainer> model, Device& device,
                                          const NormalizedColumns& columns);

/// Scaling of features: the inner model sees (x - mean[i]) * factor[i].
struct FeatureScaling {
  std::vector<double> mean, factor;
};
/// Returns the scaling of a state's features; nullopt if they are not normalized or no row was trained yet.
std::optional<FeatureScaling> feature_scaling(const ModelState& state);
/// Scaling of predictions: mean[i] + deviation[i] * output i.
struct TargetScaling {
  std::vector<double> mean, deviation;
};
std::optional<TargetScaling> target_scaling(const ModelState& state);

}  // namespace rivulet::devices
