#include "devices/adam_step.h"

namespace rivulet::devices {

extern const OptimizerEntry optimizer_adam;
const OptimizerEntry optimizer_adam{
    "adam", "adaptive step size per parameter, from running means of gradients and squared gradients",
    adam_keys, adam_arrays, [](const OptimizerStep& step) { adam_step(step, Decay::into_gradient); }};

}  // namespace rivulet::devices
