#include "devices/adam_step.h"

namespace rivulet::devices {

extern const OptimizerEntry optimizer_adamw;
const OptimizerEntry optimizer_adamw{"adamw", "Adam with decoupled weight decay", adam_keys, adam_arrays,
                                     [](const OptimizerStep& step) { adam_step(step, Decay::decoupled); }};

}  // namespace rivulet::devices
