#include "runtime/status/http/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>

namespace rivulet::runtime {
namespace {

constexpr std::size_t header_most = 1024;

Error wrong_file(const std::string& path, const std::string& why) {
  return {ErrorCode::invalid_config, fmt::format("http.token_file = '{}': {}", path, why)};
}

/// Takes time proportional to the maximum token length, independent of the first difference.
bool equal_in_constant_time(std::string_view said, std::string_view token) {
  std::array<unsigned char, Access::token_most> a{};
  std::array<unsigned char, Access::token_most> b{};
  std::copy_n(said.begin(), std::min(said.size(), a.size()), a.begin());
  std::copy_n(token.begin(), std::min(token.size(), b.size()), b.begin());
  volatile unsigned char differs = said.size() == token.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) differs = differs | static_cast<unsigned char>(a[i] ^ b[i]);
  return differs == 0;
}

int sextet_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  return c == '/' ? 63 : -1;
}

/// Decodes base64 up to the first invalid character.
std::string decoded(std::string_view text) {
  std::string out;
  unsigned bits = 0;
  int have = 0;
  for (const char c : text) {
    const int sextet = sextet_of(c);
    if (sextet < 0) break;
    bits = (bits << 6U | static_cast<unsigned>(sextet)) & 0xFFFFU;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out.push_back(static_cast<char>(bits >> static_cast<unsigned>(have) & 0xFFU));
  }
  return out;
}

bool has_scheme(std::string_view header, std::string_view scheme) {
  const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
  return header.size() > scheme.size() && header[scheme.size()] == ' ' &&
         std::equal(scheme.begin(), scheme.end(), header.begin(), same);
}

}  // namespace

Result<Access> Access::from_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return wrong_file(path, "cannot be read");
  std::array<char, token_most + 3> buffer{};
  file.read(buffer.data(), buffer.size());
  if (file.bad()) return wrong_file(path, "cannot be read");
  std::string_view text(buffer.data(), static_cast<std::size_t>(file.gcount()));
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  if (text.size() < token_least || text.size() > token_most)
    return wrong_file(path,
                      fmt::format("must contain one line of {} to {} characters", token_least, token_most));
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; }))
    return wrong_file(path, "must contain one line of printable characters without spaces");
  return Access(text);
}

bool Access::allows(std::string_view header) const {
  if (!needs_token()) return true;
  if (header.size() > header_most) return false;
  if (has_scheme(header, "bearer")) return equal_in_constant_time(header.substr(7), token_);
  if (!has_scheme(header, "basic")) return false;
  const std::string pair = decoded(header.substr(6));
  const auto colon = pair.find(':');
  return colon != std::string::npos &&
         equal_in_constant_time(std::string_view(pair).substr(colon + 1), token_);
}

}  // namespace rivulet::runtime
