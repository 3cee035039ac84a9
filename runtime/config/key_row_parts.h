#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/config/key_rows.h"

/// Parts shared by the files that list keys (private to config/): value readers, bounds, and the lists
/// themselves.
namespace rivulet::sync::policy {
enum class Role : std::uint8_t;
}

namespace rivulet::runtime {

// Readers for setters; coerce() guarantees the variant's type.
inline const std::string& str(const Value& v) {
  return std::get<std::string>(v.data);
}
inline double real(const Value& v) {
  return std::get<double>(v.data);
}
template <class T>
T whole(const Value& v) {
  return static_cast<T>(std::get<std::int64_t>(v.data));
}
inline std::vector<std::int64_t> integers(const Value& value) {
  std::vector<std::int64_t> out;
  for (const auto& item : std::get<Value::List>(value.data)) out.push_back(std::get<std::int64_t>(item.data));
  return out;
}
/// Also accepts a single number.
inline std::vector<double> numbers(const Value& value) {
  const auto* list = std::get_if<Value::List>(&value.data);
  if (value.text() != nullptr) return {};  // a keyword in place of numbers
  if (list == nullptr) return {std::get<double>(value.data)};
  std::vector<double> out;
  for (const auto& item : *list) out.push_back(std::get<double>(item.data));
  return out;
}
inline std::vector<std::string> texts(const Value& value) {
  std::vector<std::string> out;
  for (const auto& item : std::get<Value::List>(value.data)) out.push_back(*item.text());
  return out;
}
inline Duration time(const Value& v) {
  return parse_duration(str(v)).value();
}

/// Whether the key must be equal on all devices, so that they train one model.
inline bool is_group_key(const std::string& key) {
  if (key == "source.topics") return true;
  if (key == "sync.bind" || key == "sync.advertise" || key == "sync.port") return false;
  constexpr std::array tables{"job.",   "decode.", "batch.",       "inject.",     "normalize.",
                              "model.", "train.",  "compression.", "checkpoint.", "sync."};
  return std::any_of(tables.begin(), tables.end(), [&](const char* table) { return key.starts_with(table); });
}

struct Extra {
  std::vector<std::string> choices;
  std::vector<std::string> later;
  std::string since;
  std::string sample;
};
inline KeySpec spec(const char* key, const char* type, const char* text, const char* help,
                    const Extra& extra = {}) {
  return {key,   type,        text,          help,        is_group_key(key),
          false, extra.since, extra.choices, extra.later, extra.sample};
}

inline constexpr Bounds positive{0, 1e300, true};
inline constexpr Bounds not_negative{0, 1e300, false};
inline constexpr Bounds some_time{0, 86'400, true};
inline constexpr Bounds rows{1, 1'000'000, false};

/// Returns the controllers of a role for the help of its key: "every (what it does) | periodic (...)".
std::string controllers_of(sync::policy::Role role);
std::vector<KeyRow> model_rows();
std::vector<KeyRow> train_rows();
std::vector<KeyRow> sync_and_checkpoint_rows();
std::vector<KeyRow> operation_rows();
/// Returns the keys of all catalog entries without duplicates.
std::vector<KeyRow> entry_rows();
/// Converts a value to the type that its key has in Config::settings.
Settings::Value setting_of(const KeyRow& row, const Value& value);

}  // namespace rivulet::runtime
