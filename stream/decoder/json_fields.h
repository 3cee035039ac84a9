#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "stream/decoder.h"
#include "stream/decoder/json_path.h"

namespace rivulet::stream {

/// Which fields of an object a decoder reads.
struct JsonFields {
  std::vector<JsonPath> features;
  std::optional<JsonPath> target;
  std::optional<JsonPath> kind;  ///< that says whether a row is meant
  std::string kind_wanted;
};

/// As [decode] names them. Errors: invalid_config (names the key).
Result<JsonFields> json_fields_of(const DecodeConfig& config);

/// Count of numbers that paths yield; 0 if one of them leaves it open.
std::size_t total_width(const std::vector<JsonPath>& paths);

/// Numbers that the steps from `first` on yield, of a path whose width is known.
std::size_t width_from(const JsonPath& path, std::size_t first);

}  // namespace rivulet::stream
