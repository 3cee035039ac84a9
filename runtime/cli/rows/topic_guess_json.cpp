#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "runtime/cli/rows/topic_guess.h"
#include "stream/decoder/json_path.h"

namespace rivulet::runtime::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int deepest = 16;
constexpr std::size_t most_fields = 1000;

/// Returns the label as decoders read it: text, true and false are unchanged, numbers are in shortest form.
std::string label_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "true" : "false";
  if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
  if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
  return fmt::format("{}", value.get<double>());
}

bool reads_as_number(const Json& value) {
  return value.is_boolean() || (value.is_string() && label_number(value.get<std::string>()));
}

class Reader {
 public:
  void record(const std::string& text) {
    auto whole = Json::parse(text, nullptr, false);
    if (!whole.is_discarded()) {
      rows_of(whole);
      return;
    }
    for (std::size_t at = 0; at < text.size();) {
      const auto end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      auto row = Json::parse(line, nullptr, false);
      if (row.is_object())
        object(row, "", 0);
      else
        ++fields_.broken;
      if (row.is_object()) ++fields_.rows;
    }
  }
  GuessedFields take() && { return std::move(fields_); }

 private:
  void rows_of(const Json& whole) {
    const auto one = [&](const Json& row) {
      if (!row.is_object()) {
        ++fields_.broken;
        return;
      }
      ++fields_.rows;
      object(row, "", 0);
    };
    if (!whole.is_array()) return one(whole);
    for (const auto& row : whole) one(row);
  }

  void object(const Json& value, const std::string& path, int depth) {
    for (const auto& [key, inner] : value.items()) {
      if (key.empty()) continue;
      const std::string name = (path.empty() ? "" : path + ".") + stream::key_in_path(key);
      if (inner.is_object() && depth < deepest)
        object(inner, name, depth + 1);
      else if (auto* field = find(name))
        add(*field, inner);
    }
  }

  GuessedField* find(const std::string& name) {
    const auto at = places_.find(name);
    if (at != places_.end()) return &fields_.all[at->second];
    if (fields_.all.size() >= most_fields) return nullptr;
    places_[name] = fields_.all.size();
    fields_.all.push_back({.name = name});
    return &fields_.all.back();
  }

  static void add(GuessedField& field, const Json& value) {
    if (value.is_null()) return;
    const bool first = field.rows++ == 0;
    const bool single = value.is_number() || value.is_string() || value.is_boolean();
    if (single && field.length) field.mixed = true;
    if (single) {
      ++(value.is_number() ? field.numbers : field.texts);
      field.readable += value.is_number() || !reads_as_number(value) ? 0 : 1;
      field.values.add(label_of(value));
      return;
    }
    const bool numbers =
        value.is_array() && !value.empty() &&
        std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_number() || v.is_null(); });
    if (!numbers || (!first && field.length != value.size())) field.mixed = true;
    if (numbers) field.length = value.size();
  }

  GuessedFields fields_{.format = "json"};
  std::map<std::string, std::size_t> places_;
};

}  // namespace

std::optional<GuessedFields> json_fields(const std::vector<std::string>& records) {
  Reader reader;
  for (const auto& record : records) reader.record(record);
  auto fields = std::move(reader).take();
  if (fields.rows == 0 || fields.broken > fields.rows || fields.all.empty()) return std::nullopt;
  return fields;
}

}  // namespace rivulet::runtime::cli
