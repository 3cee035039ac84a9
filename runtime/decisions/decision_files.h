#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace rivulet::runtime {

/// A file of a decision log. The log consists of PATH, which is being written, and the full files before it:
/// PATH.1, PATH.2, ... in this order. The oldest are deleted when all files together exceed the limit, so the
/// first number that exists shows how many are missing.
struct DecisionFile {
  std::uint64_t number = 0;  ///< for PATH itself: one more than the newest full file
  std::string path;
  std::uint64_t bytes = 0;
};

/// All files, oldest first; PATH comes last if it exists. Empty if there is no log.
std::vector<DecisionFile> decision_files(const std::string& path);

/// Describes the missing files, one sentence each: deleted ones and gaps. Pure.
std::vector<std::string> missing_decision_files(const std::string& path,
                                                const std::vector<DecisionFile>& files);

}  // namespace rivulet::runtime
