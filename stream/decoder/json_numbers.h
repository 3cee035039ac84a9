#pragma once
#include <string>
#include <string_view>

/// Numbers in JSON text that the parser does not take. Both scan the text once; for the rare record.
namespace rivulet::stream {

/// Does the text hold a number that is valid but too large for a double? simdjson gives it the same error as
/// a number that is written wrongly.
bool has_overflow(std::string_view text) noexcept;

/// `text` with ".0" behind every integer of twenty digits or more outside of strings: simdjson takes an
/// integer only if it fits 64 bits, a number with a fraction of any size.
std::string with_fractions(std::string_view text);

}  // namespace rivulet::stream
