#pragma once
#include <string_view>

namespace rivulet::stream {

/// Check for configuration keys: whether `text` is a decimal separator that numbers in texts may use.
constexpr bool is_decimal_sign(std::string_view text) {
  return text == "." || text == ",";
}
inline constexpr std::string_view decimal_form = "'.' or ','";

}  // namespace rivulet::stream
