#pragma once
#include <string_view>

/// Lines of JSON text, before a parser sees them. Pure.
namespace rivulet::stream {

/// Without blanks and line ends around it.
std::string_view trim_json(std::string_view text) noexcept;

bool looks_like_object(std::string_view line) noexcept;

/// The next line that is not blank, taken off `rest`; empty at the end.
std::string_view take_line(std::string_view& rest) noexcept;

/// Several lines, and one of them looks like an object.
bool has_object_line(std::string_view text) noexcept;

}  // namespace rivulet::stream
