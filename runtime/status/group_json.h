#pragma once
#include <string>

#include "runtime/decisions/round_explanation.h"
#include "runtime/status/recent_rounds.h"

namespace rivulet::runtime {

/// A round in numbers and words, as one JSON object on one line.
std::string story_json(const RoundExplanation& story);

/// The group as one member of it saw its last rounds, for /api/v1/group: {"view", "rank", "members": [ids by
/// rank], "left_out", "rounds": [newest first], "story": the newest round whose successor is known, with
/// every member's numbers, or null}. Pure.
std::string group_json(const RecentRounds::Shown& shown);

}  // namespace rivulet::runtime
