#pragma once
#include <string_view>

/// Functions on lines of JSON text before parsing. Pure.
namespace rivulet::stream {

/// Strips surrounding blanks and line ends.
std::string_view trim_json(std::string_view text) noexcept;

bool looks_like_object(std::string_view line) noexcept;

/// Removes and returns the next non-blank line of `rest`; empty at the end.
std::string_view take_line(std::string_view& rest) noexcept;

/// Whether the text has several lines and one of them looks like an object.
bool has_object_line(std::string_view text) noexcept;

}  // namespace rivulet::stream
