#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace rivulet::testing {

/// Combines the decision logs of a group: the rounds of the surviving state, and their rows. Shares no code
/// with the ledger or the fold.
struct RunHistory {
  std::uint64_t rounds = 0;                          ///< applied and part of the surviving state
  std::uint64_t rows = 0;                            ///< of these rounds
  std::uint64_t lost_rounds = 0;                     ///< agreed, but never applied or replaced later
  std::uint64_t rows_again = 0;                      ///< of lost rounds
  std::uint64_t torn_lines = 0;                      ///< truncated by a kill
  std::map<std::uint64_t, std::uint64_t> begins;     ///< view -> first step
  std::map<std::int32_t, std::int64_t> next_offset;  ///< by partition, from the rounds
  std::vector<std::string> wrong;                    ///< errors as text; empty = none
};

/// Reads DIRECTORY/decisions.jsonl and older files of every device; `final_step` is that of the final state.
/// Errors: two devices with different decisions for a round, or different digests of the state before it; a
/// step with no round or two; rows that do not start at the end of the partition's last ones.
RunHistory read_history(const std::vector<std::string>& directories, std::uint64_t final_step);

}  // namespace rivulet::testing
