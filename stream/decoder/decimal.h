#pragma once
#include <string_view>

namespace rivulet::stream {

/// For configuration keys: decimal separators that a number in a text may have.
constexpr bool is_decimal_sign(std::string_view text) {
  return text == "." || text == ",";
}
inline constexpr std::string_view decimal_form = "'.' or ','";

}  // namespace rivulet::stream
