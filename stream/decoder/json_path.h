#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace rivulet::stream {

/// One step into a JSON value: a key of an object, an element of an array, or a run of elements.
struct JsonStep {
  enum class Kind : std::uint8_t { key, index, slice } kind = Kind::key;
  std::string key;
  std::size_t first = 0;  ///< index, or begin of the slice
  std::size_t last = 0;   ///< end of the slice, exclusive; `open_end` = to the end of the array
};
inline constexpr std::size_t open_end = static_cast<std::size_t>(-1);

/// "a.b[2]", "current[0:3]", "readings[0:4].x", "pixels", "grid[:]". A key with a dot or a bracket is written
/// with a backslash before it.
struct JsonPath {
  std::string text;
  std::vector<JsonStep> steps;
  /// How many numbers it yields if the path alone says so: 1 without slices; nullopt with an open slice.
  [[nodiscard]] std::optional<std::size_t> width() const;
  /// The path of the n-th of these numbers alone: "current[2]" of "current[1:3]", n = 1. n < width().
  [[nodiscard]] std::string name_of(std::size_t n) const;
};

/// Errors: invalid_config ("position 7: expected ']'"); the caller puts the key before it.
Result<JsonPath> parse_json_path(std::string_view text);

/// A key of an object as a path writes it: "a.b" is "a\.b".
std::string key_in_path(const std::string& key);

}  // namespace rivulet::stream
