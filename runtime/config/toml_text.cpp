#include "runtime/config/toml_text.h"

#include <toml++/toml.h>
#include <algorithm>
#include <string_view>

namespace rivulet::runtime {

namespace {

KeyPlace place_of(const toml::source_region& region) {
  return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column)};
}

Value value_of(const toml::node& node) {
  Value value;
  value.place = place_of(node.source());
  if (const auto* text = node.as_string()) {
    value.data = text->get();
  } else if (const auto* integer = node.as_integer()) {
    value.data = integer->get();
  } else if (const auto* real = node.as_floating_point()) {
    value.data = real->get();
  } else if (const auto* boolean = node.as_boolean()) {
    value.data = boolean->get();
  } else if (const auto* array = node.as_array()) {
    Value::List list;
    for (const auto& item : *array) list.push_back(value_of(item));
    value.data = std::move(list);
  } else {
    value.data = Value::Other{node.is_table() ? "a table" : "a date or time"};
  }
  return value;
}

class Flatten {
 public:
  explicit Flatten(const std::string& text) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      lines_.push_back(std::string_view(text).substr(at, end - at));
      at = end + 1;
    }
  }

  void table(const toml::table& table, std::vector<TomlLeaf>& leaves) {
    for (const auto& [key, node] : table) {
      path_.emplace_back(key.str());
      places_.push_back(start_of_dotted(place_of(key.source())));
      const auto* inner = node.as_table();
      if (inner != nullptr && !inner->empty()) {
        this->table(*inner, leaves);
      } else {
        leaves.push_back({path_, places_, value_of(node)});
      }
      path_.pop_back();
      places_.pop_back();
    }
  }

 private:
  /// For `bootstrap.servers = ...` the library reports the place of the last name; this returns the first,
  /// which readers expect.
  [[nodiscard]] KeyPlace start_of_dotted(KeyPlace place) const {
    if (place.line < 1 || static_cast<std::size_t>(place.line) > lines_.size()) return place;
    const std::string_view line = lines_[static_cast<std::size_t>(place.line) - 1];
    std::size_t begin = std::min(line.size(), static_cast<std::size_t>(place.column) - 1);
    while (begin > 0 && std::string_view("{,[=").find(line[begin - 1]) == std::string_view::npos) --begin;
    while (begin < line.size() && (line[begin] == ' ' || line[begin] == '\t')) ++begin;
    return {place.line, static_cast<int>(begin) + 1};
  }

  std::vector<std::string_view> lines_;
  std::vector<std::string> path_;
  std::vector<KeyPlace> places_;
};

}  // namespace

TomlText read_toml(const std::string& text, const std::string& name) {
  TomlText out;
  try {
    const toml::table table = toml::parse(text, name);
    Flatten(text).table(table, out.leaves);
  } catch (const toml::parse_error& error) {
    const auto place = place_of(error.source());
    Problem problem;
    problem.file = name;
    problem.line = place.line;
    problem.column = place.column;
    problem.message = std::string(error.description());
    out.problems.push_back(std::move(problem));
  }
  return out;
}

}  // namespace rivulet::runtime
