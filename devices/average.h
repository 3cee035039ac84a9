#pragma once
#include "devices/model_state.h"

namespace rivulet::devices {

/// Updates the average of the parameters after an agreed step of `rows` rows of the group. The average covers
/// the last ModelLayout::average_rows rows (Polyak and Juditsky 1992, with a window). Evaluation and
/// predictions use it, since it is less noisy than the last parameters. Pure. Errors: from copies between
/// host and device. Cost: one pass.
Status follow_average(ModelState& state, double rows, Device& device);

}  // namespace rivulet::devices
