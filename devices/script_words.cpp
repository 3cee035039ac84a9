#include "devices/script_words.h"

#include <algorithm>

#include "core/printable.h"

namespace rivulet::devices {
namespace {

constexpr std::size_t words_max = 500;
constexpr std::string_view blanks = " \t\r\n";

/// Removes line ends, blanks at both ends, and repeated blanks.
std::string in_one_line(std::string_view words) {
  std::string out;
  for (const char c : words) {
    const bool blank = blanks.find(c) != std::string_view::npos;
    if (blank && (out.empty() || out.back() == ' ')) continue;
    out += blank ? ' ' : c;
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

std::string_view line_at(std::string_view words, std::size_t at) {
  return words.substr(at, words.find('\n', at) - at);
}

/// Last place named before `end`: 'File "net.py", line 3, in forward'.
std::string place_before(std::string_view words, std::size_t end) {
  const auto at = words.substr(0, end).rfind("  File \"");
  return at == std::string_view::npos ? "" : in_one_line(line_at(words, at));
}

}  // namespace

std::string readable(std::string_view words) {
  // A traceback ends with the script's own line and a mark below it; the reason follows.
  const auto mark = words.find("Traceback of TorchScript") == std::string_view::npos
                        ? std::string_view::npos
                        : words.rfind("<--- HERE");
  const auto behind = mark == std::string_view::npos ? mark : words.find('\n', mark);
  std::string reason = behind == std::string_view::npos ? "" : in_one_line(words.substr(behind));
  if (reason.empty()) return printable(in_one_line(words)).substr(0, words_max);
  const std::string place = printable(place_before(words, mark));
  reason = printable(reason).substr(0, words_max - std::min(words_max, place.size() + 3));
  return (place.empty() ? reason : reason + " (" + place + ")").substr(0, words_max);
}

}  // namespace rivulet::devices
