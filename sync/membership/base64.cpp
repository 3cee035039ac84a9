#include "sync/membership/base64.h"

#include <cstdint>

namespace rivulet::sync::membership {

namespace {

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8U | (k < n ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k) text += k <= n ? alphabet[group >> (18 - 6 * k) & 63U] : '=';
  }
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    const bool last = i + 4 == text.size();
    const std::size_t padding = !last || text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 4 - padding; ++k) {
      const std::size_t digit = alphabet.find(text[i + k]);
      if (digit == std::string_view::npos) return std::nullopt;
      group |= static_cast<std::uint32_t>(digit) << (18 - 6 * k);
    }
    if (padding > 0 && (group & (padding == 1 ? 0xFFU : 0xFFFFU)) != 0) return std::nullopt;
    for (std::size_t k = 0; k < 3 - padding; ++k)
      bytes.push_back(static_cast<std::byte>(group >> (16 - 8 * k)));
  }
  return bytes;
}

}  // namespace rivulet::sync::membership
