#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rivulet::runtime {

/// A line of a decision log that version 3, 4, 5 or 6 wrote, in the words of this one and without a checksum;
/// what did not exist then has its default. What it reports can be explained, but its plans cannot be made
/// again: version 3 made them in one tense, and none hashed what plans hold now. The checksum was verified.
/// Nothing: it is no such line.
struct OlderLine {
  std::string text;
  std::uint64_t version = 3;
};
std::optional<OlderLine> upgrade_line(std::string_view line);

}  // namespace rivulet::runtime
