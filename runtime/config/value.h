#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "runtime/config/config.h"

/// Private to config/: values on their way from text to Config.
namespace rivulet::runtime {

/// A TOML value without TOML's library. Tables do not occur: their keys are separate settings.
struct Value {
  struct Other {
    std::string what;  ///< "a table", "a date"
    bool operator==(const Other&) const = default;
  };
  using List = std::vector<Value>;
  std::variant<std::string, std::int64_t, double, bool, List, Other> data;
  KeyPlace place;
  bool secret = false;        ///< read from a ${file:...}
  bool interpolated = false;  ///< a string that had a ${...}: may stand for a number
  std::string written;        ///< of an interpolated one: with the ${...}, which is what people are shown

  [[nodiscard]] const std::string* text() const { return std::get_if<std::string>(&data); }
  bool operator==(const Value& other) const { return data == other.data; }
};

/// As TOML: strings quoted and escaped. The value itself, also of a secret.
std::string render(const Value& value);
/// As TOML, for people: what was interpolated, in a list too, stands there as it was written.
std::string shown(const Value& value);
/// For messages: the integer 5, the string "a"; as shown().
std::string describe(const Value& value);
/// shown() of a text without quotes. `resolved`: the text, or the part of it that the message is about.
std::string shown_text(const Value& value, const std::string& resolved);

/// One key with its value and where both came from.
struct Setting {
  std::string key;
  Value value;
  KeyPlace place;      ///< of the key
  std::string source;  ///< for Problem::file: a file name, "environment NAME", "--set key=...", "flag"
  std::string origin;  ///< for LoadedConfig::origin
};

/// Where things went wrong; one list for a whole load.
using Problems = std::vector<Problem>;
void complain(Problems& problems, const Setting& setting, std::string message, std::string hint = {});

/// "12ms" in the largest unit that fits.
std::string render_duration(Duration d);

/// " - did you mean 'x'?" or empty.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);
/// "a, b, c"
std::string joined(const std::vector<std::string>& words);

}  // namespace rivulet::runtime
