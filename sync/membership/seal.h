#pragma once
#include <cstdint>

#include "sync/membership/next_view.h"

/// Private to membership/: the effect of an accepted CLOSE. Part of the fold.
namespace rivulet::sync::membership {

/// Makes `next`, which has no error, the present view. `offset`, `time_ms`: of the CLOSE, by the log.
void seal(Fold& fold, std::int64_t offset, std::int64_t time_ms, const NextView& next);

}  // namespace rivulet::sync::membership
