#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rivulet::testing {

/// What the decision logs of a group say together: which rounds are part of the state that survived, and
/// which rows were in them. Shares no code with the ledger or the fold.
struct RunHistory {
  std::uint64_t rounds = 0;       ///< applied and part of the surviving state
  std::uint64_t rows = 0;         ///< that were in them
  std::uint64_t lost_rounds = 0;  ///< agreed on, and not part of it: never applied, or replaced
  std::uint64_t rows_again = 0;   ///< that were in lost rounds
  std::uint64_t torn_lines = 0;   ///< cut off by a kill
  std::map<std::uint64_t, std::uint64_t> begins;     ///< view -> the step it began at
  std::map<std::int32_t, std::int64_t> next_offset;  ///< by partition, as the rounds lead to it
  std::vector<std::string> wrong;                    ///< what does not fit, in words; empty = all fits
};

/// Reads DIRECTORY/decisions.jsonl (and the files before it) of every device; `final_step` is that of the
/// state they ended with. Wrong is: two devices that decided differently in one round; a step that no round
/// led to, or two; rows that do not begin where the last ones of their partition ended.
RunHistory read_history(const std::vector<std::string>& directories, std::uint64_t final_step);

}  // namespace rivulet::testing
