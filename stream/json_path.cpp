#include <charconv>
#include <iterator>

#include "stream/decoder/json_path.h"

namespace rivulet::stream {
namespace {

class PathReader {
 public:
  explicit PathReader(std::string_view text) : text_(text) {}

  Result<JsonPath> read() {
    JsonPath path{.text = std::string(text_)};
    bool key_next = true;
    while (at_ < text_.size() || key_next) {
      const bool bracket = at_ < text_.size() && text_[at_] == '[';
      if (key_next && !bracket) {
        if (!key(path)) return wrong("expected a key");
      } else if (!bracket || !subscript(path)) {
        return wrong(bracket ? "expected [index] or [begin:end]" : "expected '.' or '['");
      }
      key_next = at_ < text_.size() && text_[at_] == '.';
      if (key_next) ++at_;
    }
    return path;
  }

 private:
  [[nodiscard]] Error wrong(std::string_view why) const {
    return {ErrorCode::invalid_config,
            "\"" + std::string(text_) + "\", position " + std::to_string(at_ + 1) + ": " + std::string(why)};
  }

  bool key(JsonPath& path) {
    std::string key;
    while (at_ < text_.size() && text_[at_] != '.' && text_[at_] != '[') {
      if (text_[at_] == ']') return false;
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      key += text_[at_++];
    }
    if (key.empty()) return false;
    path.steps.push_back({.kind = JsonStep::Kind::key, .key = std::move(key)});
    return true;
  }

  bool subscript(JsonPath& path) {
    const auto close = text_.find(']', at_);
    if (close == std::string_view::npos) return false;
    const std::string_view inside = text_.substr(at_ + 1, close - at_ - 1);
    const auto colon = inside.find(':');
    JsonStep step{.kind = colon == std::string_view::npos ? JsonStep::Kind::index : JsonStep::Kind::slice};
    if (!number(inside.substr(0, colon), step.first, step.kind == JsonStep::Kind::slice)) return false;
    if (step.kind == JsonStep::Kind::slice) {
      step.last = open_end;
      if (!number(inside.substr(colon + 1), step.last, true) || step.last <= step.first) return false;
    }
    path.steps.push_back(std::move(step));
    at_ = close + 1;
    return true;
  }

  static bool number(std::string_view text, std::size_t& value, bool may_be_empty) {
    if (text.empty()) return may_be_empty;
    std::size_t parsed = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    if (code != std::errc{} || end != text.data() + text.size() || parsed > 100'000'000) return false;
    value = parsed;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string key_in_path(const std::string& key) {
  std::string out;
  for (const char c : key) {
    if (c == '.' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::optional<std::size_t> JsonPath::width() const {
  std::size_t product = 1;
  for (const auto& step : steps) {
    if (step.kind != JsonStep::Kind::slice) continue;
    if (step.last == open_end) return std::nullopt;
    product *= step.last - step.first;
    if (product > (std::size_t{1} << 28)) return std::nullopt;
  }
  return product;
}

std::string JsonPath::name_of(std::size_t n) const {
  std::string name;
  // From the last step, whose index varies fastest.
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->kind == JsonStep::Kind::key) {
      name.insert(0, (std::next(step) == steps.rend() ? "" : ".") + key_in_path(step->key));
      continue;
    }
    std::size_t index = step->first;
    if (step->kind == JsonStep::Kind::slice) {
      index += n % (step->last - step->first);
      n /= step->last - step->first;
    }
    name.insert(0, "[" + std::to_string(index) + "]");
  }
  return name;
}

Result<JsonPath> parse_json_path(std::string_view text) {
  return PathReader(text).read();
}

}  // namespace rivulet::stream
