#include "tests/support/source_text.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "tests/support/temp_dir.h"

namespace rivulet::testing {
namespace {

namespace fs = std::filesystem;

enum class Kind { code, comment, literal };

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Classifies each character of a file. Delimiters of literals count as code.
class Classifier {
 public:
  explicit Classifier(std::string_view text) : text_(text), kinds_(text.size(), Kind::code) {}

  std::vector<Kind> classify() {
    while (at_ < text_.size()) {
      if (starts_with("//")) {
        mark_until(Kind::comment, text_.find('\n', at_));
      } else if (starts_with("/*")) {
        mark_until(Kind::comment, after(text_.find("*/", at_ + 2), 2));
      } else if (starts_with("R\"") && (at_ == 0 || !is_word(text_[at_ - 1]))) {
        raw_literal();
      } else if (text_[at_] == '"' || (text_[at_] == '\'' && !(at_ > 0 && is_word(text_[at_ - 1])))) {
        quoted_literal(text_[at_]);  // a ' after a digit only groups digits
      } else {
        ++at_;
      }
    }
    return std::move(kinds_);
  }

 private:
  [[nodiscard]] bool starts_with(std::string_view prefix) const {
    return text_.substr(at_, prefix.size()) == prefix;
  }
  static std::size_t after(std::size_t found, std::size_t length) {
    return found == std::string_view::npos ? found : found + length;
  }
  void mark_until(Kind kind, std::size_t end) {
    end = std::min(end, text_.size());
    std::fill(kinds_.begin() + static_cast<std::ptrdiff_t>(at_),
              kinds_.begin() + static_cast<std::ptrdiff_t>(end), kind);
    at_ = end;
  }
  void quoted_literal(char quote) {
    std::size_t end = ++at_;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    mark_until(Kind::literal, end);
    ++at_;
  }
  void raw_literal() {
    at_ += 2;
    const std::size_t open = text_.find('(', at_);
    const std::string close = ")" + std::string(text_.substr(at_, open - at_)) + "\"";
    at_ = after(open, 1);
    mark_until(Kind::literal, text_.find(close, std::min(at_, text_.size())));
    at_ += close.size();
  }

  std::string_view text_;
  std::vector<Kind> kinds_;
  std::size_t at_ = 0;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    lines.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return lines;
}

std::vector<std::string> only(Kind wanted, std::string text, const std::vector<Kind>& kinds) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (kinds[i] != wanted && text[i] != '\n') text[i] = ' ';
  }
  return lines_of(text);
}

}  // namespace

SourceText read_source(const fs::path& root, const fs::path& relative) {
  const std::string text = read_file(root / relative);
  const std::vector<Kind> kinds = Classifier(text).classify();
  return SourceText{relative, lines_of(text), only(Kind::code, text, kinds), only(Kind::comment, text, kinds),
                    only(Kind::literal, text, kinds)};
}

std::vector<SourceText> read_sources(const fs::path& root, const std::vector<std::string>& folders) {
  std::vector<fs::path> paths;
  for (const std::string& folder : folders) {
    // An error, since skipping a renamed folder would silently disable a check.
    if (!fs::is_directory(root / folder))
      throw std::runtime_error("no folder " + folder + " in " + root.string());
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".h" || extension == ".cpp") paths.push_back(fs::relative(entry.path(), root));
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<SourceText> sources;
  for (const fs::path& path : paths) sources.push_back(read_source(root, path));
  return sources;
}

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < line.size();) {
    std::size_t end = i;
    while (end < line.size() && is_word(line[end])) ++end;
    if (end > i) words.emplace_back(line.substr(i, end - i));
    i = std::max(end, i + 1);
  }
  return words;
}

}  // namespace rivulet::testing
