#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rivulet::testing {

/// One C++ file seen line by line in three ways, each of the same length: what is not of that kind is blank.
struct SourceText {
  std::filesystem::path path;         ///< relative to the root that was read
  std::vector<std::string> raw;       ///< as it stands in the file
  std::vector<std::string> code;      ///< without comments and without the insides of literals
  std::vector<std::string> comments;  ///< only comments
  std::vector<std::string> literals;  ///< only the insides of string literals, include paths among them
};

SourceText read_source(const std::filesystem::path& root, const std::filesystem::path& relative);

/// All .h and .cpp files under these folders of `root`, in the order of their names. Throws
/// std::runtime_error if one of the folders is not there.
std::vector<SourceText> read_sources(const std::filesystem::path& root,
                                     const std::vector<std::string>& folders);

/// The identifiers of a line of code: maximal runs of letters, digits and underscores.
std::vector<std::string> words_of(std::string_view line);

}  // namespace rivulet::testing
