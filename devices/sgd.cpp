#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/vector_code.h"
#include "devices/host_memory.h"
#include "devices/numbers.h"
#include "devices/trainer.h"

namespace rivulet::devices {
namespace {

/// w, v and g do not overlap.
template <class T>
struct Numbers {
  T* w;
  T* v;
  const T* g;
  std::size_t count;
};

template <class T>
Numbers<T> numbers_of(ModelState& state, const GradientView& gradient) {
  return {state.parameters().as<T>().data(), state.momentum().as<T>().data(), gradient.as<T>().data(),
          gradient.count};
}

/// As torch::optim::SGD without dampening: g += wd w; v = mu v + g; w -= lr v.
template <class T>
[[gnu::always_inline]] inline void step(const Numbers<T>& n, const SgdConfig& sgd, double rate,
                                        double scale) {
  const T lr = static_cast<T>(rate);
  const T mu = static_cast<T>(sgd.momentum);
  const T wd = static_cast<T>(sgd.weight_decay);
  const T clip = static_cast<T>(scale);
  T* __restrict w = n.w;
  T* __restrict v = n.v;
  const T* __restrict g = n.g;
  for (std::size_t i = 0; i < n.count; ++i) {
    v[i] = mu * v[i] + (clip * g[i] + wd * w[i]);
    w[i] -= lr * v[i];
  }
}

RIVULET_VECTOR_CODE void step_f32(const Numbers<float>& n, const SgdConfig& sgd, double rate, double scale) {
  step(n, sgd, rate, scale);
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
  if (layout.scalar == Scalar::f32)
    step_f32(numbers_of<float>(state, gradient), sgd, rate, scale);
  else
    step(numbers_of<double>(state, gradient), sgd, rate, scale);
  copy_host_numbers(agreed.slice(layout.parameters, layout.buffers), state.buffers());
  return {norm, rate};
}

}  // namespace rivulet::devices
