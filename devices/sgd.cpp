#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "devices/host_memory.h"
#include "devices/numbers.h"
#include "devices/trainer.h"

namespace rivulet::devices {
namespace {

/// As torch::optim::SGD without dampening: g += wd w; v = mu v + g; w -= lr v.
template <class T>
void step(std::span<T> w, std::span<T> v, std::span<const T> gradient, const SgdConfig& sgd, double rate,
          double scale) {
  const T lr = static_cast<T>(rate);
  const T mu = static_cast<T>(sgd.momentum);
  const T wd = static_cast<T>(sgd.weight_decay);
  const T clip = static_cast<T>(scale);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const T g = clip * gradient[i] + wd * w[i];
    v[i] = mu * v[i] + g;
    w[i] -= lr * v[i];
  }
}

/// As clip_grad_norm_: the 1e-6 keeps a zero gradient from dividing by zero.
double clip_scale(double norm, double limit) {
  return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
}

}  // namespace

ApplyReport sgd_step(ModelState& state, const GradientView& agreed, const SgdConfig& sgd,
                     double learning_rate_factor) {
  const ModelLayout& layout = state.layout();
  RIVULET_CHECK(agreed.count == layout.contribution(), "a contribution of another model");
  const GradientView gradient = agreed.slice(0, layout.parameters);
  const double norm = std::sqrt(norm2(gradient));
  const double rate = sgd.learning_rate * learning_rate_factor;
  const double scale = clip_scale(norm, sgd.clip_grad_norm);
  if (layout.scalar == Scalar::f32) {
    step<float>(state.parameters().as<float>(), state.momentum().as<float>(), gradient.as<float>(), sgd, rate,
                scale);
  } else {
    step<double>(state.parameters().as<double>(), state.momentum().as<double>(), gradient.as<double>(), sgd,
                 rate, scale);
  }
  copy_host_numbers(agreed.slice(layout.parameters, layout.buffers), state.buffers());
  return {norm, rate};
}

}  // namespace rivulet::devices
