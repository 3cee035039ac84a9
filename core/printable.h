#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace rivulet {

/// Returns `text` without anything that a terminal or log would interpret. Control characters (below space,
/// DEL, and U+0080 to U+009F) and bidirectional overrides (U+202A to U+202E, U+2066 to U+2069) become \n, \r,
/// \t or \u001b; bytes that are not UTF-8 become \x9b. In a JSON document these are JSON's own escapes, so
/// its meaning is unchanged. Everything that the program prints for users is escaped by this function. Linear
/// time, any thread.
std::string printable(std::string_view text);

/// As printable(), for multi-line text: newlines and tabs are kept.
std::string printable_lines(std::string_view text);

/// Number of bytes (0 to 3) at the end of `text` that begin an incomplete UTF-8 character.
std::size_t unfinished_tail(std::string_view text) noexcept;

}  // namespace rivulet
