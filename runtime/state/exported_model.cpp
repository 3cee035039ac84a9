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

/// weight [n, m], then bias [n].
template <class T>
void fold(const devices::TargetScaling& scaling, std::span<T> weight, std::span<T> bias) {
  const std::size_t inputs = weight.size() / bias.size();
  for (std::size_t row = 0; row < bias.size(); ++row) {
    for (T& w : weight.subspan(row * inputs, inputs)) w = static_cast<T>(w * scaling.deviation[row]);
    bias[row] = static_cast<T>(scaling.mean[row] + scaling.deviation[row] * bias[row]);
  }
}

/// Into the layer whose weight is this slot.
template <class Scaling>
void fold_into(const Scaling& scaling, const devices::ModelLayout& layout, std::size_t slot,
               std::vector<std::byte>& parameters) {
  const auto fold_numbers = [&]<class T>(std::vector<T> numbers) {
    std::memcpy(numbers.data(), parameters.data(), parameters.size());
    const auto of = [&](std::size_t i) {
      return std::span(numbers).subspan(layout.parameter_slots[i].begin, layout.parameter_slots[i].count);
    };
    fold<T>(scaling, of(slot), of(slot + 1));
    std::memcpy(parameters.data(), numbers.data(), parameters.size());
  };
  layout.scalar == Scalar::f32 ? fold_numbers(std::vector<float>(layout.parameters))
                               : fold_numbers(std::vector<double>(layout.parameters));
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

ExportedModel exported_model(const AgreedState& state) {
  const auto& layout = state.model.layout();
  const devices::ModelState used = devices::averaged(state.model);
  const auto bytes = used.parameters().host_bytes();
  ExportedModel out{.parameters = {bytes.begin(), bytes.end()},
                    .scaling = devices::feature_scaling(state.model),
                    .targets = devices::target_scaling(state.model)};
  if (out.targets && layout.normalized.linear_last) {
    fold_into(*out.targets, layout, layout.parameter_slots.size() - 2, out.parameters);
    out.targets.reset();
  }
  if (!out.scaling) return out;
  out.normalization = Normalization::apart;
  if (!layout.normalized.linear_first || !fits(*out.scaling)) return out;
  fold_into(*out.scaling, layout, 0, out.parameters);
  out.normalization = Normalization::folded;
  return out;
}

}  // namespace rivulet::runtime
