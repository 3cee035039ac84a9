#include "devices/adam_step.h"

namespace rivulet::devices {
namespace {

RIVULET_VECTOR_CODE void step_f32(const AdamNumbers<float>& n) {
  adam_loop(n);
}

void apply(const OptimizerStep& s) {
  if (s.parameters.scalar == Scalar::f32)
    step_f32(adam_numbers<float>(s, Decay::into_gradient));
  else
    adam_loop(adam_numbers<double>(s, Decay::into_gradient));
}

}  // namespace

extern const OptimizerEntry optimizer_adam;
const OptimizerEntry optimizer_adam{"adam",
                                    "a rate for each parameter from the means of gradients and squares",
                                    adam_keys, adam_arrays, &apply};

}  // namespace rivulet::devices
