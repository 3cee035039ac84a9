#include "runtime/config/value.h"

#include <fmt/format.h>

namespace rivulet::runtime {

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          out += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

std::string number(double v) {
  std::string text = fmt::format("{}", v);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

/// Renders a list, each item by `item`.
template <class Item>
std::string listed(const Value::List& list, Item item) {
  std::string text = "[";
  for (const auto& v : list) text += (text.size() > 1 ? ", " : "") + item(v);
  return text + "]";
}

struct Render {
  std::string operator()(const std::string& v) const { return quoted(v); }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return number(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const Value::Other& v) const { return v.what; }
  std::string operator()(const Value::List& v) const { return listed(v, render); }
};

struct Describe {
  std::string operator()(const std::string& v) const { return "the string " + quoted(v); }
  std::string operator()(std::int64_t v) const { return "the integer " + std::to_string(v); }
  std::string operator()(double v) const { return "the number " + number(v); }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(const Value::Other& v) const { return v.what; }
  std::string operator()(const Value::List& v) const { return "the list " + listed(v, shown); }
};

}  // namespace

std::string render(const Value& value) {
  return std::visit(Render(), value.data);
}
std::string shown(const Value& value) {
  if (value.interpolated) return quoted(value.written);
  const auto* list = std::get_if<Value::List>(&value.data);
  return list != nullptr ? listed(*list, shown) : render(value);
}
std::string shown_text(const Value& value, const std::string& resolved) {
  return value.interpolated ? value.written : resolved;
}
std::string describe(const Value& value) {
  if (value.interpolated) return "the value that " + quoted(value.written) + " resolves to";
  return std::visit(Describe(), value.data);
}

void report_error(Problems& problems, const Setting& setting, std::string message, std::string hint) {
  Problem problem;
  problem.file = setting.source;
  problem.line = setting.place.line;
  problem.column = setting.place.column;
  problem.message = std::move(message);
  problem.hint = std::move(hint);
  problems.push_back(std::move(problem));
}

std::string Problem::text() const {
  std::string place = file;
  if (line > 0) place += fmt::format(":{}:{}", line, column);
  if (!place.empty()) place += ": ";
  const std::string tail = hint.empty() ? "" : "\n        hint: " + hint;
  return place + (warning ? "warning: " : "error: ") + message + tail;
}

}  // namespace rivulet::runtime
