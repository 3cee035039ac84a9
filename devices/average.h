#pragma once
#include "devices/model_state.h"

namespace rivulet::devices {

/// An agreed step of N rows of the group has changed the parameters: their average follows, over the
/// last ModelLayout::average_rows rows (Polyak and Juditsky 1992, with a window). It is what a model is used
/// by: it has less of the noise of the last steps. Pure. Errors: those of a device that has to copy. Cost:
/// one pass.
Status follow_average(ModelState& state, double rows, Device& device);

}  // namespace rivulet::devices
