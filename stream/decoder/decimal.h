#pragma once
#include <string_view>

namespace rivulet::stream {

/// For keys: what may stand between whole and part of a number in a text.
constexpr bool is_decimal_sign(std::string_view text) {
  return text == "." || text == ",";
}
inline constexpr std::string_view decimal_form = "'.' or ','";

}  // namespace rivulet::stream
