#pragma once
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace rivulet::testing {

/// What became of each offset of a partition, by a test's own account: "trained", "dropped: REASON" or
/// "hole".
using Fates = std::vector<std::string>;

/// Partition and offset of a row -> the step that it was trained in, as `rivulet ledger show --rows` says.
using StepOfRow = std::map<std::pair<int, std::int64_t>, std::uint64_t>;

/// Compares the output of `rivulet ledger show --rows --json`, where each record is one row, with what
/// happened to the rows (by partition). Every offset has its fate and no other, the log ends where the books
/// do, rounds follow each other and hold what they say. `steps` gets the rows of the rounds that are listed;
/// rows that another device has in another step are wrong. Returns what is wrong, in words. Shares no code
/// with the ledger.
std::vector<std::string> compare_ledger(const nlohmann::json& shown, const std::vector<Fates>& fates,
                                        StepOfRow& steps);

}  // namespace rivulet::testing
