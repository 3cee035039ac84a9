#include "stream/decoder/json_place.h"

#include <algorithm>

namespace rivulet::stream {
namespace {

/// Scans text that a parser has validated; stops at the end if it is malformed.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  void skip_blanks() noexcept { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  bool take(char c) noexcept {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string_view string() noexcept {
    if (!take('"')) return {};
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_, text_.size());
    const std::string_view inside = text_.substr(begin, at_ - begin);
    take('"');
    return inside;
  }

  /// Skips one value of any depth, counting brackets.
  std::string_view value() noexcept {
    std::size_t depth = 0;
    skip_blanks();
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool closes = c == '}' || c == ']';
      if (depth == 0 && (closes || c == ',')) break;
      if (c == '"') {
        string();
      } else {
        depth += (c == '{' || c == '[') ? 1 : 0;
        depth -= closes ? 1 : 0;
        ++at_;
      }
    }
    const std::string_view all = text_.substr(begin, at_ - begin);
    return all.substr(0, all.find_last_not_of(" \t\r\n") + 1);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

bool enter_key(Scanner& scan, std::string_view key) noexcept {
  if (!scan.take('{')) return false;
  do {
    const std::string_view found = scan.string();
    if (!scan.take(':')) return false;
    if (found == key) return true;
    scan.value();
  } while (scan.take(','));
  return false;
}

bool enter_index(Scanner& scan, std::size_t index) noexcept {
  if (!scan.take('[')) return false;
  for (std::size_t i = 0; i < index; ++i) {
    scan.value();
    if (!scan.take(',')) return false;
  }
  return true;
}

}  // namespace

std::optional<std::string_view> value_in(std::string_view json, std::span<const JsonStep> steps) noexcept {
  Scanner scan(json);
  for (const JsonStep& step : steps) {
    const bool there =
        step.kind == JsonStep::Kind::key ? enter_key(scan, step.key) : enter_index(scan, step.first);
    if (!there || step.kind == JsonStep::Kind::slice) return std::nullopt;
  }
  const std::string_view value = scan.value();
  return value.empty() ? std::nullopt : std::optional(value);
}

}  // namespace rivulet::stream
