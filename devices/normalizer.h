#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "devices/columns.h"
#include "devices/trainer.h"

namespace rivulet::devices {

/// A trainer whose model sees normalized columns: (x - shown_mean) / shown_deviation, clipped at the limit,
/// as the state's columns say; features, and with mse targets, too, whose predictions are scaled back. Losses
/// of normalized targets are in their variances: answering the mean has 1. It measures what it sees
/// (devices/columns.h) on the way.
///   - Before the group knows anything, a device goes by its own rows, and no model sees a raw row in
///     training. Those are measured robustly, batch by batch: beyond the limit around the median, in
///     deviations that the quartiles say, they are clipped.
///   - A value beyond the limit is clipped, and counted; one beyond the square of the limit is not a reading,
///   and
///     the model sees the mean. When there are many, they are a change of the stream, or they are not:
///     devices/outliers.h.
///   - A missing value (NaN) is the mean.
/// Sums in double. Memory: a copy of the batch. Cost: a pass over it.
std::unique_ptr<Trainer> make_normalizing(std::unique_ptr<Trainer> model, Device& device,
                                          const NormalizedColumns& columns);

/// What the model inside sees of feature i: (x - mean[i]) * factor[i].
struct FeatureScaling {
  std::vector<double> mean, factor;
};
/// Of a state whose features are normalized; nullopt: they are not, or no row was trained yet, so that they
/// are as they came.
std::optional<FeatureScaling> feature_scaling(const ModelState& state);
/// A prediction is mean[i] + deviation[i] * output i.
struct TargetScaling {
  std::vector<double> mean, deviation;
};
std::optional<TargetScaling> target_scaling(const ModelState& state);

}  // namespace rivulet::devices
