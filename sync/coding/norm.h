#pragma once
#include "core/gradient_view.h"

namespace rivulet::sync {

/// Returns the L2 norm of a vector in host memory, from squares in double; non-finite if an element is, or if
/// it exceeds a double. One pass. Pure; any thread.
double norm_of(const GradientView& numbers);

}  // namespace rivulet::sync
