#pragma once
#include <string>
#include <vector>

#include "runtime/decisions/decision.h"

namespace rivulet::runtime {

/// Explains how the contributions of a round were summed, and shows the input of the gate that decided it:
/// gains at some keep ratios by both published definitions. `before`: the preceding round, whose plan
/// scheduled this one; null if unknown. Returns no sentences if the round exchanged nothing.
std::vector<std::string> exchange_explanation(const ViewRecord& view, const RoundRecord* before,
                                              const RoundRecord& round);

}  // namespace rivulet::runtime
