#pragma once
#include <string>
#include <vector>

#include "runtime/decisions/decision.h"

namespace rivulet::runtime {

/// How the contributions of a round were summed, and what a gate that decided about that saw: gains of some
/// shares by both published definitions. `before`: the round before it, whose plan said how this one was
/// entered; null: not known. Nothing of a round in which nothing was exchanged.
std::vector<std::string> how_it_was_exchanged(const ViewRecord& view, const RoundRecord* before,
                                              const RoundRecord& round);

}  // namespace rivulet::runtime
