#pragma once
#include <string>

#include "runtime/decisions/round_explanation.h"
#include "runtime/status/recent_rounds.h"

namespace rivulet::runtime {

/// Renders one round as numbers and sentences: a JSON object on one line.
std::string explanation_json(const RoundExplanation& story);

/// Renders the last rounds of the group as one member recorded them, for /api/v1/group: {"view", "rank",
/// "members": [ids by rank], "left_out", "rounds": [newest first], "story": the newest round whose successor
/// is known, with the facts of all members, or null}. Pure.
std::string group_json(const RecentRounds::Shown& shown);

}  // namespace rivulet::runtime
