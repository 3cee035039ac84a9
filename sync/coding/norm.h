#pragma once
#include "core/gradient_view.h"

namespace rivulet::sync {

/// Returns the L2 norm of a vector in host memory, summed in double; non-finite if an element is, or if
/// the sum of squares overflows. One pass. Pure; any thread.
double norm_of(const GradientView& numbers);

}  // namespace rivulet::sync
