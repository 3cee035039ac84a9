#include "core/vector_code.h"
#include "devices/optimizer.h"

namespace rivulet::devices {
namespace {

constexpr Key keys[] = {{.name = "train.optimizer.momentum",
                         .text = "0.9",
                         .help = "for sgd, momentum factor, below 1",
                         .least = 0,
                         .most = 0.999999}};
constexpr RememberedArray arrays[] = {{"momentum", ArrayKind::delta}};

/// w, v and g do not overlap.
template <class T>
struct Numbers {
  T* __restrict w;
  T* __restrict v;
  const T* __restrict g;
  std::size_t count;
  T rate, momentum, decay, scale;
};

template <class T>
Numbers<T> numbers_of(const OptimizerStep& s) {
  return {s.parameters.as<T>().data(),     s.arrays[0].as<T>().data(),
          s.gradient.as<T>().data(),       s.gradient.count,
          static_cast<T>(s.learning_rate), static_cast<T>(s.settings.number(keys[0].name)),
          static_cast<T>(s.weight_decay),  static_cast<T>(s.scale)};
}

/// As torch::optim::SGD without dampening: g += wd w; v = mu v + g; w -= lr v.
template <class T>
[[gnu::always_inline]] inline void step(const Numbers<T>& n) {
  const T lr = n.rate;
  const T mu = n.momentum;
  const T wd = n.decay;
  const T clip = n.scale;
  T* __restrict w = n.w;
  T* __restrict v = n.v;
  const T* __restrict g = n.g;
  for (std::size_t i = 0; i < n.count; ++i) {
    v[i] = mu * v[i] + (clip * g[i] + wd * w[i]);
    w[i] -= lr * v[i];
  }
}

RIVULET_VECTOR_CODE void step_f32(const Numbers<float>& n) {
  step(n);
}

void apply(const OptimizerStep& s) {
  if (s.parameters.scalar == Scalar::f32)
    step_f32(numbers_of<float>(s));
  else
    step(numbers_of<double>(s));
}

}  // namespace

extern const OptimizerEntry optimizer_sgd;
const OptimizerEntry optimizer_sgd{"sgd",
                                   "stochastic gradient descent with momentum, as torch.optim.SGD",
                                   keys,
                                   arrays,
                                   &apply,
                                   [](double learning_rate, const Settings& settings) {
                                     return learning_rate / (1 - settings.number(keys[0].name));
                                   }};

}  // namespace rivulet::devices
