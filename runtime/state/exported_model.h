#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "devices/normalizer.h"
#include "runtime/state/agreed_state.h"

namespace rivulet::runtime {

/// How the exported model handles the mean and deviation measured in training.
enum class Normalization : std::uint8_t {
  none,      ///< the model takes features as the decoder returns them
  folded,    ///< as `none`, because the first layer includes the normalization
  separate,  ///< the caller must pass (x - mean) * factor
};
std::string_view name_of(Normalization normalization) noexcept;

/// The model in a state, for programs that lack Rivulet's normalization.
struct ExportedModel {
  std::vector<std::byte> parameters;  ///< parameters in the order and type of the layout
  Normalization normalization = Normalization::none;
  std::optional<devices::FeatureScaling> scaling;  ///< nullopt if nothing was measured
  /// Maps an output to a prediction. nullopt if outputs are predictions, for example because the last layer
  /// includes the scaling.
  std::optional<devices::TargetScaling> targets;
};

/// Folds the normalization of features into the first layer (and a parallel skip layer): w' = w * factor and
/// b' = b - sum(w * factor * mean). Does this only if the layout supports it and no feature's mean is so far
/// from 0 that the sum would lose precision. Folds the normalization of targets into the last layer if the
/// layout supports it. Needs host-readable memory. Cost: a copy of the parameters.
ExportedModel exported_model(const AgreedState& state);

}  // namespace rivulet::runtime
