#include "devices/adam_step.h"

namespace rivulet::devices {
namespace {

RIVULET_VECTOR_CODE void step_f32(const AdamNumbers<float>& n) {
  adam_loop(n);
}

void apply(const OptimizerStep& s) {
  if (s.parameters.scalar == Scalar::f32)
    step_f32(adam_numbers<float>(s, Decay::decoupled));
  else
    adam_loop(adam_numbers<double>(s, Decay::decoupled));
}

}  // namespace

extern const OptimizerEntry optimizer_adamw;
const OptimizerEntry optimizer_adamw{"adamw", "adam with weight decay apart from the gradient", adam_keys,
                                     adam_arrays, &apply};

}  // namespace rivulet::devices
