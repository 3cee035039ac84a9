#pragma once
#include <memory>

#include "devices/trainer.h"

namespace rivulet::runtime {

/// Makes a trainer for timing: every gradient is zero and not written, every step succeeds, every loss is 0.
/// Never touches the memory of model arrays, so they cost only address space. Stateless: one trainer can
/// serve a whole group.
std::unique_ptr<devices::Trainer> make_timing_trainer(const devices::ModelLayout& layout);

}  // namespace rivulet::runtime
