#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "devices/normalizer.h"
#include "runtime/state/agreed_state.h"

namespace rivulet::runtime {

/// What becomes of the mean and the deviation that were measured in training.
enum class Normalization : std::uint8_t {
  none,    ///< the model takes features as the decoder gives them
  folded,  ///< the same: the first layer does the rest
  apart,   ///< the model takes (x - mean) * factor, which its user must make
};
std::string_view name_of(Normalization normalization) noexcept;

/// The model of a state, as a program that knows nothing of normalization loads it.
struct ExportedModel {
  std::vector<std::byte> parameters;  ///< in the order and type of the layout
  Normalization normalization = Normalization::none;
  std::optional<devices::FeatureScaling> scaling;  ///< none: nothing was measured
  /// What a prediction is of an output; none: the same, also where it is folded into the last layer.
  std::optional<devices::TargetScaling> targets;
};

/// Folds the normalization of features into the first layer (and a skip beside it), w' = w * factor and b' =
/// b - sum(w * factor * mean), if the layout has it and if no feature lies so far from 0, in deviations, that
/// the sum loses what it is about; that of targets into the last layer, if the layout has that. Needs
/// host-readable memory. Cost: a copy of the parameters.
ExportedModel exported_model(const AgreedState& state);

}  // namespace rivulet::runtime
