#include <algorithm>
#include <cctype>
#include <utility>

#include "runtime/status/http/front.h"

namespace rivulet::runtime {
namespace {

constexpr std::string_view line_end = "\r\n";
constexpr int headers_most = 32;

bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

bool all_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::string_view take_line(std::string_view& rest) {
  const auto end = rest.find(line_end);
  const auto line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + line_end.size());
  return line;
}

std::optional<std::string_view> path_of(std::string_view line) {
  for (const std::string_view path : {"/livez", "/readyz"})
    for (const std::string_view version : {" HTTP/1.1", " HTTP/1.0"})
      if (line.size() == 4 + path.size() + version.size() && line.starts_with("GET ") &&
          line.substr(4).starts_with(path) && line.ends_with(version))
        return path;
  return std::nullopt;
}

}  // namespace

std::optional<HttpRequest> plain_probe(std::string_view head) {
  if (!head.ends_with("\r\n\r\n")) return std::nullopt;
  const auto path = path_of(take_line(head));
  if (!path) return std::nullopt;
  HttpRequest probe{.method = "GET", .path = *path, .authorization = {}};
  bool said = false;
  for (int headers = 0;; ++headers) {
    const auto line = take_line(head);
    if (line.empty()) break;
    const auto colon = line.find(':');
    if (headers == headers_most || !all_printable(line) || colon == std::string_view::npos || colon == 0 ||
        line.substr(0, colon).find(' ') != std::string_view::npos)
      return std::nullopt;
    const auto name = line.substr(0, colon);
    // A body, or another protocol, is for the server that knows all of HTTP.
    if (same_name(name, "Content-Length") || same_name(name, "Transfer-Encoding") ||
        same_name(name, "Upgrade") || same_name(name, "Expect"))
      return std::nullopt;
    if (!same_name(name, "Authorization")) continue;
    if (std::exchange(said, true)) return std::nullopt;
    auto value = line.substr(colon + 1);
    while (value.starts_with(' ')) value.remove_prefix(1);
    while (value.ends_with(' ')) value.remove_suffix(1);
    probe.authorization = value;
  }
  if (!head.empty()) return std::nullopt;
  return probe;
}

}  // namespace rivulet::runtime
