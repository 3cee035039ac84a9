#include "stream/decoder/json_lines.h"

#include <algorithm>

namespace rivulet::stream {
namespace {

constexpr bool blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

}  // namespace

std::string_view trim_json(std::string_view text) noexcept {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool looks_like_object(std::string_view line) noexcept {
  return line.size() >= 2 && line.front() == '{' && line.back() == '}';
}

std::string_view take_line(std::string_view& rest) noexcept {
  while (!rest.empty()) {
    const std::size_t line_end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = trim_json(rest.substr(0, line_end));
    rest.remove_prefix(std::min(line_end + 1, rest.size()));
    if (!line.empty()) return line;
  }
  return {};
}

bool has_object_line(std::string_view text) noexcept {
  if (text.starts_with('[') || text.find('\n') == std::string_view::npos) return false;
  for (auto line = take_line(text); !line.empty(); line = take_line(text))
    if (looks_like_object(line)) return true;
  return false;
}

}  // namespace rivulet::stream
