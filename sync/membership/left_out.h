#pragma once
#include <string>
#include <vector>

#include "sync/membership/next_view.h"

/// Private to membership/: ready devices that the next view does without. Pure functions of the fold.
namespace rivulet::sync::membership {

/// Ids of candidates whose state or messages are wrong according to the others, sorted. Only members of the
/// last view judge: a candidate is accused if half of the other judges say so; if fewer do, and there are
/// several others, the accuser is. Nobody is accused if no other candidate could serve the state.
std::vector<std::string> accused_among(const Fold& fold, const Devices& candidates);

/// Removes candidates until each pair can connect, as far as at least `least` and a device that serves the
/// state remain. Pairs that could not connect in the last attempts are known from their READYs.
void leave_out_unreachable(const Fold& fold, std::size_t least, Devices& candidates);

}  // namespace rivulet::sync::membership
