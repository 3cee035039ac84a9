#include "core/printable.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace rivulet {
namespace {

constexpr std::string_view digits = "0123456789abcdef";

/// Bytes of the character that begins with `lead`; 0 if `lead` begins no character.
std::size_t length_of(unsigned char lead) noexcept {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  return lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
}

bool continues(char c) noexcept {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80;
}

struct Character {
  std::uint32_t point = 0;
  std::size_t bytes = 0;  ///< 0: the first byte is not valid UTF-8
};

/// The first character of a non-empty text.
Character first_of(std::string_view text) noexcept {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = length_of(lead);
  if (length == 1) return {lead, 1};
  if (length == 0 || text.size() < length) return {};
  std::uint32_t point = lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) return {};
    point = point << 6U | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> least{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
  if (point < least.at(length) || point > 0x10FFFF || surrogate) return {};
  return {point, length};
}

bool is_obeyed(std::uint32_t point) noexcept {
  return point < 0x20 || (point >= 0x7F && point < 0xA0) || (point >= 0x202A && point <= 0x202E) ||
         (point >= 0x2066 && point <= 0x2069);
}

void append_escape(std::string& out, std::uint32_t point) {
  switch (point) {
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: out += "\\u";
  }
  for (int shift = 12; shift >= 0; shift -= 4) out += digits[point >> static_cast<unsigned>(shift) & 0xFU];
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_of(text);
    const std::size_t bytes = std::max<std::size_t>(character.bytes, 1);
    if (character.bytes == 0) {
      const auto byte = static_cast<unsigned char>(text.front());
      out.append("\\x").append(1, digits[byte >> 4U]).append(1, digits[byte & 0xFU]);
    } else if (is_obeyed(character.point) && kept.find(text.front()) == std::string_view::npos) {
      append_escape(out, character.point);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace

std::string printable(std::string_view text) {
  return escaped(text, "");
}

std::string printable_lines(std::string_view text) {
  return escaped(text, "\n\t");
}

std::size_t unfinished_tail(std::string_view text) noexcept {
  std::size_t tail = 0;
  while (tail < text.size() && tail < 3 && continues(text[text.size() - 1 - tail])) ++tail;
  if (tail == text.size()) return 0;
  const std::size_t length = length_of(static_cast<unsigned char>(text[text.size() - 1 - tail]));
  return length > tail + 1 ? tail + 1 : 0;
}

}  // namespace rivulet
