#include "core/printable.h"

namespace rivulet {

std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool second_set = byte >= 0x80 && byte < 0xA0 && out.ends_with('\xC2');
    if (second_set) out.pop_back();
    out += second_set || byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  return out;
}

}  // namespace rivulet
