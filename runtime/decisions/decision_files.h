#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace rivulet::runtime {

/// A file of a decision log. The log consists of PATH, which is being written, and the full files before it:
/// PATH.1, PATH.2, ... in this order. The oldest files are deleted when the total size exceeds the limit, so
/// the lowest existing number shows how many are missing.
struct DecisionFile {
  std::uint64_t number = 0;  ///< for PATH itself: one more than the newest full file
  std::string path;
  std::uint64_t bytes = 0;
};

/// Returns all files, oldest first; PATH comes last if it exists. Empty if there is no log.
std::vector<DecisionFile> decision_files(const std::string& path);

/// Describes the missing files in one sentence each: deleted files and gaps in the numbers. Pure.
std::vector<std::string> missing_decision_files(const std::string& path,
                                                const std::vector<DecisionFile>& files);

}  // namespace rivulet::runtime
