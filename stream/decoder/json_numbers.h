#pragma once
#include <string>
#include <string_view>

/// Numbers in JSON text that the parser rejects. Both functions scan the text once; for rare records only.
namespace rivulet::stream {

/// Whether the text contains a valid number too large for a double. simdjson reports the same error for it as
/// for a malformed number.
bool has_overflow(std::string_view text) noexcept;

/// Appends ".0" to every integer of twenty digits or more outside strings: simdjson accepts integers only up
/// to 64 bits, but numbers with a fraction of any size.
std::string with_fractions(std::string_view text);

}  // namespace rivulet::stream
