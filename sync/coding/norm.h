#pragma once
#include "core/gradient_view.h"

namespace rivulet::sync {

/// L2 norm of numbers in host memory, from squares in double: of a norm that no double holds, or of what is
/// no number, no number. One pass. Pure; any thread.
double norm_of(const GradientView& numbers);

}  // namespace rivulet::sync
