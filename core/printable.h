#pragma once
#include <string>
#include <string_view>

namespace rivulet {

/// What a terminal may be sent of text from elsewhere: control characters, which could move its cursor, are
/// '?' (those below blank, DEL, and the second set that UTF-8 has at U+0080), and so are those that
/// turn the order of letters round (U+202A to U+202E, U+2066 to U+2069). Other bytes stay.
std::string printable(std::string_view text);

}  // namespace rivulet
