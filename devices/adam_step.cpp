#include "devices/adam_step.h"

#include <cmath>

#include "core/vector_code.h"

namespace rivulet::devices {
namespace {

template <class T>
struct AdamNumbers {
  T* w;
  T* m;
  T* v;
  const T* g;
  std::size_t count;
  T beta1, beta2, eps, rate, root, scale, l2, shrink;
};

template <class T>
AdamNumbers<T> adam_numbers(const OptimizerStep& s, Decay decay) {
  const double beta1 = s.settings.number("train.optimizer.beta1");
  const double beta2 = s.settings.number("train.optimizer.beta2");
  const auto t = static_cast<double>(s.step);
  const bool into_gradient = decay == Decay::into_gradient;
  return {.w = s.parameters.as<T>().data(),
          .m = s.arrays[0].as<T>().data(),
          .v = s.arrays[1].as<T>().data(),
          .g = s.gradient.as<T>().data(),
          .count = s.gradient.count,
          .beta1 = static_cast<T>(beta1),
          .beta2 = static_cast<T>(beta2),
          .eps = static_cast<T>(s.settings.number("train.optimizer.eps")),
          .rate = static_cast<T>(s.learning_rate / (1 - std::pow(beta1, t))),
          .root = static_cast<T>(std::sqrt(1 - std::pow(beta2, t))),
          .scale = static_cast<T>(s.scale),
          .l2 = static_cast<T>(into_gradient ? s.weight_decay : 0),
          .shrink = static_cast<T>(into_gradient ? 1 : 1 - s.learning_rate * s.weight_decay)};
}

template <class T>
[[gnu::always_inline]] inline void adam_loop(const AdamNumbers<T>& n) {
  T* __restrict w = n.w;
  T* __restrict m = n.m;
  T* __restrict v = n.v;
  const T* __restrict grad = n.g;
  const T one = 1;
  const AdamNumbers<T> c = n;
  for (std::size_t i = 0; i < c.count; ++i) {
    const T g = c.scale * grad[i] + c.l2 * w[i];
    m[i] = m[i] + (one - c.beta1) * (g - m[i]);
    v[i] = c.beta2 * v[i] + (one - c.beta2) * (g * g);
    w[i] = c.shrink * w[i] - c.rate * (m[i] / (std::sqrt(v[i]) / c.root + c.eps));
  }
}

RIVULET_VECTOR_CODE void adam_loop_f32(const AdamNumbers<float>& n) {
  adam_loop(n);
}

}  // namespace

void adam_step(const OptimizerStep& step, Decay decay) {
  if (step.parameters.scalar == Scalar::f32)
    adam_loop_f32(adam_numbers<float>(step, decay));
  else
    adam_loop(adam_numbers<double>(step, decay));
}

}  // namespace rivulet::devices
