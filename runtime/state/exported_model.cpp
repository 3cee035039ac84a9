#include "runtime/state/exported_model.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "devices/columns.h"

namespace rivulet::runtime {
namespace {

/// Maximum mean, in standard deviations. Adding and subtracting it causes a relative error of 1000 times
/// float32's 6e-8.
constexpr double mean_most = 1000;

bool fits(const devices::FeatureScaling& scaling) {
  for (std::size_t i = 0; i < scaling.mean.size(); ++i)
    if (!(std::abs(scaling.mean[i]) * scaling.factor[i] <= mean_most)) return false;
  return true;
}

/// The rescaling after which the model takes raw features and returns raw predictions.
devices::Rescaling unscaled(const ExportedModel& model, const devices::NormalizedColumns& columns) {
  devices::Rescaling by{.ratio = std::vector<double>(columns.features, 1),
                        .shift = std::vector<double>(columns.features, 0),
                        .woken = std::vector<bool>(columns.features, false),
                        .gain = std::vector<double>(columns.targets, 1),
                        .offset = std::vector<double>(columns.targets, 0),
                        .moves = true};
  if (model.normalization == Normalization::folded) {
    by.ratio = model.scaling->factor;
    for (std::size_t i = 0; i < columns.features; ++i)
      by.shift[i] = -model.scaling->factor[i] * model.scaling->mean[i];
  }
  if (model.targets) {
    by.gain = model.targets->deviation;
    by.offset = model.targets->mean;
  }
  return by;
}

}  // namespace

std::string_view name_of(Normalization normalization) noexcept {
  switch (normalization) {
    case Normalization::none: return "none";
    case Normalization::folded: return "folded";
    case Normalization::separate: return "separate";
  }
  return "";
}

ExportedModel exported_model(const AgreedState& state) {
  const auto& layout = state.model.layout();
  const devices::ModelState used = devices::averaged(state.model);
  const auto bytes = used.parameters().host_bytes();
  ExportedModel out{.parameters = {bytes.begin(), bytes.end()},
                    .scaling = devices::feature_scaling(state.model),
                    .targets = devices::target_scaling(state.model)};
  if (out.scaling) {
    const bool folds = layout.normalized.linear_first && fits(*out.scaling);
    out.normalization = folds ? Normalization::folded : Normalization::separate;
  }
  const GradientView numbers{
      .data = out.parameters.data(), .count = layout.parameters, .scalar = layout.scalar};
  devices::rescale(numbers, devices::ArrayKind::parameters, unscaled(out, layout.normalized), layout);
  if (layout.normalized.linear_last) out.targets.reset();
  return out;
}

}  // namespace rivulet::runtime
