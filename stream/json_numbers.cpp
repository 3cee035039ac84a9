#include "stream/decoder/json_numbers.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "stream/decoder/base.h"

namespace rivulet::stream {

bool has_overflow(std::string_view text) noexcept {
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"') in_string = !in_string;
    if (text[i] == '\\') ++i;
    if (in_string || i >= text.size() ||
        (text[i] != '-' && std::isdigit(static_cast<unsigned char>(text[i])) == 0))
      continue;
    const std::size_t stop = std::min(text.find_first_not_of("+-.eE0123456789", i), text.size());
    const auto number = parse_number(text.substr(i, stop - i));
    if (number && std::isinf(*number)) return true;
    i = stop - 1;
  }
  return false;
}

std::string with_fractions(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (in_string || !digit) {
      if (text[i] == '"') in_string = !in_string;
      out += text[i];
      if (in_string && text[i] == '\\' && i + 1 < text.size()) out += text[++i];
      continue;
    }
    const std::size_t stop = std::min(text.find_first_not_of("0123456789+-.eE", i), text.size());
    const std::string_view number = text.substr(i, stop - i);
    out += number;
    // The 64-bit limits, -2^63 and 2^64 - 1, have 19 and 20 digits: numbers with fewer digits always fit.
    const std::size_t longest = i > 0 && text[i - 1] == '-' ? 18 : 19;
    if (number.size() > longest && number.find_first_of(".eE") == std::string_view::npos) out += ".0";
    i = stop - 1;
  }
  return out;
}

}  // namespace rivulet::stream
