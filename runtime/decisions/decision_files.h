#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace rivulet::runtime {

/// A decision log is PATH, which is written, and the files before it, PATH.1, PATH.2, ...: a file that is
/// full gets the next number. The oldest go when all together take too much, so the first number that is
/// there shows how many are gone.
struct DecisionFile {
  std::uint64_t number = 0;  ///< of PATH itself: one more than that of the newest before it
  std::string path;
  std::uint64_t bytes = 0;
};

/// Oldest first; PATH is the last if it is there. Empty: there is no such log.
std::vector<DecisionFile> decision_files(const std::string& path);

/// What is not there of them, in sentences for people: those that were dropped, and gaps. Pure.
std::vector<std::string> missing_decision_files(const std::string& path,
                                                const std::vector<DecisionFile>& files);

}  // namespace rivulet::runtime
