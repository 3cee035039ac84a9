#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "stream/decoder/json_path.h"

namespace rivulet::stream {

/// Returns the text of the value that these steps (keys and indices) lead to, so that a message can quote it
/// with its byte position. `json` must be valid JSON. Returns nullopt if there is none, or if its key
/// contains an escape. Scans the text up to the value; for rare rows only.
std::optional<std::string_view> value_in(std::string_view json, std::span<const JsonStep> steps) noexcept;

}  // namespace rivulet::stream
