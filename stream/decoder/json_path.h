#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace rivulet::stream {

/// One step into a JSON value: a key of an object, an element of an array, or a slice of elements.
struct JsonStep {
  enum class Kind : std::uint8_t { key, index, slice } kind = Kind::key;
  std::string key;
  std::size_t first = 0;  ///< index, or start of the slice
  std::size_t last = 0;   ///< end of the slice, exclusive; `open_end` = to the end of the array
};
inline constexpr std::size_t open_end = static_cast<std::size_t>(-1);

/// "a.b[2]", "current[0:3]", "readings[0:4].x", "pixels", "grid[:]". Dots and brackets in a key are escaped
/// with a backslash.
struct JsonPath {
  std::string text;
  std::vector<JsonStep> steps;
  /// Number of values that the path yields: 1 without slices; nullopt with an open-ended slice.
  [[nodiscard]] std::optional<std::size_t> width() const;
  /// The path of the n-th of these values: "current[2]" for "current[1:3]", n = 1. n < width().
  [[nodiscard]] std::string name_of(std::size_t n) const;
};

/// Errors: invalid_config ("position 7: expected ']'"); the caller prefixes the key.
Result<JsonPath> parse_json_path(std::string_view text);

/// Escapes a key for a path: "a.b" becomes "a\.b".
std::string key_in_path(const std::string& key);

}  // namespace rivulet::stream
