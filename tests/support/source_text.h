#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rivulet::testing {

/// One C++ file by line in three views of equal length; all other content is blanked.
struct SourceText {
  std::filesystem::path path;         ///< relative to the root
  std::vector<std::string> raw;       ///< unchanged
  std::vector<std::string> code;      ///< without comments and without the contents of literals
  std::vector<std::string> comments;  ///< only comments
  std::vector<std::string> literals;  ///< only the contents of string literals, including include paths
};

SourceText read_source(const std::filesystem::path& root, const std::filesystem::path& relative);

/// Reads all .h and .cpp files under these folders of `root`, sorted by name. Throws std::runtime_error if a
/// folder is missing.
std::vector<SourceText> read_sources(const std::filesystem::path& root,
                                     const std::vector<std::string>& folders);

/// Returns the identifiers in a line of code: maximal runs of letters, digits and underscores.
std::vector<std::string> words_of(std::string_view line);

}  // namespace rivulet::testing
