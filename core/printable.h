#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace rivulet {

/// `text` with nothing in it that a terminal or a log would obey: control characters (below blank, DEL, and
/// the second set at U+0080 to U+009F) and those that reverse the order of letters (U+202A to U+202E, U+2066
/// to U+2069) become \n, \r, \t or \u001b; bytes that are no UTF-8 become \x9b. All else stays. In the text
/// of a JSON document these are JSON's own escapes, so the document keeps its meaning. The one escaping of
/// everything the program writes for people. Linear time, any thread.
std::string printable(std::string_view text);

/// The same for a text of several lines: ends of lines and tabs stay.
std::string printable_lines(std::string_view text);

/// How many bytes at the end of `text` (0 to 3) begin a character of UTF-8 that is not complete yet.
std::size_t unfinished_tail(std::string_view text) noexcept;

}  // namespace rivulet
