#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "devices/trainer.h"

namespace rivulet::devices {

/// How a trainer's features are brought to mean 0 and deviation 1.
struct Normalization {
  std::size_t columns = 0;
  /// Rows of a device after which mean and deviation stay as they are, so that a model's input stops moving.
  double rows = 0;
};

/// A trainer whose model sees normalized features: (x - mean) / deviation, feature by feature. Both are
/// running ones of the rows that were trained, from the first batch on, and buffers of the state: behind
/// those of the model "normalize.rows" [1], "normalize.mean" [columns], "normalize.variance" [columns]. So
/// devices agree on them as on batch norm's, weighted by rows; they are in digest, checkpoint, export and
/// evaluation. A feature that never changes becomes 0. Of devices whose means differ the spread between them
/// is missing from the variance of their first agreement, and fades with the rows that follow. Sums in
/// double. Memory: a copy of the batch's features. Cost: two passes over them.
std::unique_ptr<Trainer> make_normalizing(std::unique_ptr<Trainer> model, Device& device,
                                          const Normalization& normalization);

/// What the model inside sees of feature i: (x - mean[i]) * factor[i].
struct FeatureScaling {
  std::vector<double> mean, factor;
};
/// Of a state whose buffers are those of such a trainer; nullopt: they are not, or no row was trained yet, so
/// that features are as they came. Needs host-readable memory.
std::optional<FeatureScaling> feature_scaling(const ModelState& state);

/// The layout of the model inside: without what is known of features.
ModelLayout without_statistics(ModelLayout layout);

}  // namespace rivulet::devices
