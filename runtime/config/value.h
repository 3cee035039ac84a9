#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/config/config.h"

/// Private to config/: intermediate values between text and Config.
namespace rivulet::runtime {

/// A TOML value, independent of the TOML library. Tables do not occur: their keys are separate settings.
struct Value {
  struct Other {
    std::string what;  ///< "a table", "a date"
    bool operator==(const Other&) const = default;
  };
  using List = std::vector<Value>;
  std::variant<std::string, std::int64_t, double, bool, List, Other> data;
  KeyPlace place;
  bool secret = false;        ///< read from a ${file:...}
  bool interpolated = false;  ///< a string that contained a ${...}: may be a number
  std::string written;        ///< original text of an interpolated value, used for display

  [[nodiscard]] const std::string* text() const { return std::get_if<std::string>(&data); }
  bool operator==(const Value& other) const { return data == other.data; }
};

/// Renders as TOML: strings quoted and escaped. Includes secrets.
std::string render(const Value& value);
/// Renders as TOML for display: interpolated values, also in lists, appear as written.
std::string shown(const Value& value);
/// Describes a value for messages: "the integer 5", "the string "a"". Interpolated values appear as in
/// shown().
std::string describe(const Value& value);
/// Like shown(), but without quotes. `resolved`: the resolved text, or the part of it that the message
/// quotes.
std::string shown_text(const Value& value, const std::string& resolved);

/// One key with its value, and the origin of both.
struct Setting {
  std::string key;
  Value value;
  KeyPlace place;      ///< place of the key
  std::string source;  ///< for Problem::file: a file name, "environment NAME", "--set key=...", "flag"
  std::string origin;  ///< for LoadedConfig::origin
};

/// The problems of one load.
using Problems = std::vector<Problem>;
void report_error(Problems& problems, const Setting& setting, std::string message, std::string hint = {});

/// Renders "12ms" in the largest unit without fraction.
std::string render_duration(Duration d);

/// Returns " - did you mean 'x'?" or empty.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);
/// Returns "a, b, c".
std::string joined(const std::vector<std::string>& words);

}  // namespace rivulet::runtime
