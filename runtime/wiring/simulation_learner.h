#pragma once
#include <memory>

#include "devices/trainer.h"

namespace rivulet::runtime {

/// Stands where a model of this layout would: every gradient is zero and none is written, every step is a
/// step, every loss 0. Memory of the layout is never touched, so it costs address space only. Stateless: one
/// serves a whole group.
std::unique_ptr<devices::Trainer> make_timing_trainer(const devices::ModelLayout& layout);

}  // namespace rivulet::runtime
