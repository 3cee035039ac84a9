#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "stream/decoder.h"
#include "stream/decoder/json_path.h"

namespace rivulet::stream {

/// Paths of the fields that a decoder reads.
struct JsonFields {
  std::vector<JsonPath> features;
  std::optional<JsonPath> target;
  std::optional<JsonPath> kind;  ///< the field that decode.json.where filters by
  std::string kind_wanted;
};

/// Parses the paths in [decode]. Errors: invalid_config (names the key).
Result<JsonFields> json_fields_of(const DecodeConfig& config);

/// Number of values that the paths yield; 0 if one of them has no fixed width.
std::size_t total_width(const std::vector<JsonPath>& paths);

/// Number of values that the steps from `first` on yield. The path must have a fixed width.
std::size_t width_from(const JsonPath& path, std::size_t first);

}  // namespace rivulet::stream
