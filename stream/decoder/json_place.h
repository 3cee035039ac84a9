#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "stream/decoder/json_path.h"

namespace rivulet::stream {

/// The text of the value that these steps (keys and indices) lead to, inside of `json`, which is valid JSON:
/// so that a message can quote it and name its byte. nullopt: there is none, or a key of it is written with
/// an escape. Scans the text up to there; for the rare row.
std::optional<std::string_view> value_in(std::string_view json, std::span<const JsonStep> steps) noexcept;

}  // namespace rivulet::stream
