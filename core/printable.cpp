#include "core/printable.h"

#include <algorithm>

namespace rivulet {
namespace {

/// How many bytes of UTF-8 at the beginning of `text` move a cursor, or turn the order of what follows round.
std::size_t hidden_bytes(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (at(0) == 0xC2 && at(1) >= 0x80 && at(1) < 0xA0) return 2;
  const bool embeds = at(1) == 0x80 && at(2) >= 0xAA && at(2) <= 0xAE;    // U+202A to U+202E
  const bool isolates = at(1) == 0x81 && at(2) >= 0xA6 && at(2) <= 0xA9;  // U+2066 to U+2069
  return at(0) == 0xE2 && (embeds || isolates) ? 3 : 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const std::size_t hidden = byte < 0x20 || byte == 0x7F ? 1 : hidden_bytes(text);
    out += hidden > 0 ? '?' : text.front();
    text.remove_prefix(std::max<std::size_t>(hidden, 1));
  }
  return out;
}

}  // namespace rivulet
