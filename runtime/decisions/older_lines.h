#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rivulet::runtime {

/// A line of a decision log that version 3 or 4 wrote, in the words of this one and without a checksum; what
/// did not exist then has its default. Version 3 made plans in one tense: what it holds can be explained, but
/// its plans cannot be made again. Its checksum was verified. Nothing: it is no such line. Rounds of version
/// 4 are those of 5.
struct OlderLine {
  std::string text;
  std::uint64_t version = 3;
};
std::optional<OlderLine> upgrade_line(std::string_view line);

}  // namespace rivulet::runtime
