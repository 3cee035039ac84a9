#pragma once
#include <memory>

#include "devices/trainer.h"

namespace rivulet::runtime {

/// Makes a trainer for timing: every gradient is zero and not written, every step succeeds, every loss is 0.
/// Never touches memory of the layout, so it costs only address space. Stateless: one serves a whole group.
std::unique_ptr<devices::Trainer> make_timing_trainer(const devices::ModelLayout& layout);

}  // namespace rivulet::runtime
