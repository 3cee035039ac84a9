#include "runtime/state/exported_model.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

namespace rivulet::runtime {
namespace {

/// Deviations from 0: what is added and taken off again costs as many times float32's 6e-8 of the output.
constexpr double mean_most = 1000;

bool fits(const devices::FeatureScaling& scaling) {
  for (std::size_t i = 0; i < scaling.mean.size(); ++i)
    if (!(std::abs(scaling.mean[i]) * scaling.factor[i] <= mean_most)) return false;
  return true;
}

/// weight [n, columns], then bias [n].
template <class T>
void fold(const devices::FeatureScaling& scaling, std::span<T> weight, std::span<T> bias) {
  const std::size_t columns = scaling.mean.size();
  for (std::size_t row = 0; row < bias.size(); ++row) {
    double moved = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      T& w = weight[row * columns + i];
      const double scaled = static_cast<double>(w) * scaling.factor[i];
      moved += scaled * scaling.mean[i];
      w = static_cast<T>(scaled);
    }
    bias[row] = static_cast<T>(static_cast<double>(bias[row]) - moved);
  }
}

template <class T>
void fold_first(const devices::FeatureScaling& scaling, const devices::ModelLayout& layout,
                std::vector<std::byte>& parameters) {
  std::vector<T> numbers(layout.parameters);
  std::memcpy(numbers.data(), parameters.data(), parameters.size());
  const auto slot = [&](std::size_t i) {
    return std::span(numbers).subspan(layout.parameter_slots[i].begin, layout.parameter_slots[i].count);
  };
  fold<T>(scaling, slot(0), slot(1));
  std::memcpy(parameters.data(), numbers.data(), parameters.size());
}

bool is_first_layer(const devices::ModelLayout& layout, std::size_t columns) {
  const auto& slots = layout.parameter_slots;
  return slots.size() >= 2 && slots[0].count == slots[1].count * columns;
}

}  // namespace

std::string_view name_of(Normalization normalization) noexcept {
  switch (normalization) {
    case Normalization::none: return "none";
    case Normalization::folded: return "folded";
    case Normalization::apart: return "apart";
  }
  return "";
}

ExportedModel exported_model(const AgreedState& state, bool linear_first) {
  const auto& layout = state.model.layout();
  const auto bytes = state.model.parameters().host_bytes();
  ExportedModel out{{bytes.begin(), bytes.end()}, Normalization::none, devices::feature_scaling(state.model)};
  if (!out.scaling) return out;
  out.normalization = Normalization::apart;
  if (!linear_first || !is_first_layer(layout, out.scaling->mean.size()) || !fits(*out.scaling)) return out;
  layout.scalar == Scalar::f32 ? fold_first<float>(*out.scaling, layout, out.parameters)
                               : fold_first<double>(*out.scaling, layout, out.parameters);
  out.normalization = Normalization::folded;
  return out;
}

}  // namespace rivulet::runtime
