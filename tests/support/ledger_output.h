#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace rivulet::testing {

/// Fate of each offset of a partition according to the test: "trained", "dropped: REASON" or "hole".
using Fates = std::vector<std::string>;

/// Partition and offset of a row -> the step that trained it, from `rivulet ledger show --rows`.
using StepOfRow = std::map<std::pair<int, std::int64_t>, std::uint64_t>;

/// Compares `rivulet ledger show --rows --json` with the fates of rows by partition; each record is one row.
/// Checks the fate of each offset, the end of the log, and that rounds are contiguous and complete. Adds the
/// rows of listed rounds to `steps`; a row with another step on another device is an error. Returns errors as
/// text. Shares no code with the ledger.
std::vector<std::string> compare_ledger(const nlohmann::json& shown, const std::vector<Fates>& fates,
                                        StepOfRow& steps);

}  // namespace rivulet::testing
