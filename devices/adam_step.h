#pragma once
#include <cmath>

#include "core/vector_code.h"
#include "devices/optimizer.h"

/// The step that adam and adamw share (private to devices/optimizer/): they differ in where the weight decay
/// goes. As torch.optim.Adam and AdamW, without amsgrad.
namespace rivulet::devices {

inline constexpr Key adam_keys[] = {{.name = "train.optimizer.beta1",
                                     .text = "0.9",
                                     .help = "of adam and adamw: what the mean of gradients keeps a step",
                                     .least = 0,
                                     .most = 0.999999},
                                    {.name = "train.optimizer.beta2",
                                     .text = "0.999",
                                     .help = "of adam and adamw: what the mean of squares keeps a step",
                                     .least = 0,
                                     .most = 0.99999999},
                                    {.name = "train.optimizer.eps",
                                     .text = "1e-8",
                                     .help = "of adam and adamw: keeps the step finite where gradients are 0",
                                     .least = 0,
                                     .above = true}};
inline constexpr std::string_view adam_arrays[] = {"exp_avg", "exp_avg_sq"};

enum class Decay : std::uint8_t {
  into_gradient,  ///< g += wd w
  decoupled,      ///< w -= lr wd w, before the step
};

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

}  // namespace rivulet::devices
