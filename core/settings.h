#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/check.h"
#include "core/time.h"

namespace rivulet {

enum class KeyType : std::uint8_t {
  text,
  integer,
  number,
  boolean,
  duration,
  texts,     ///< a list
  integers,  ///< a list
  numbers,   ///< one number or a list
};

/// A configuration key, declared by the component that reads it: an optimizer, a controller, a compressor, a
/// decoder. Its catalog entry lists it. File, environment, `--set`, help, template, group hash and "did you
/// mean" are derived from that list (runtime/config/).
struct Key {
  std::string_view name;  ///< "train.optimizer.beta1"
  KeyType type = KeyType::number;
  std::string_view text;  ///< the default, as TOML
  std::string_view help;
  double least = -1e300;  ///< minimum of an integer or number, of a duration in seconds, of a text's length;
                          ///< in a list, of each element
  double most = 1e300;
  bool above = false;             ///< `least` itself is excluded
  std::string_view choices = {};  ///< allowed texts, "a | b"; empty = any. For numbers: words allowed instead
  /// Checks a text that has a syntax, such as a rate. If null, any text is valid.
  bool (*fits)(std::string_view text) = nullptr;
  std::string_view form = {};  ///< "a budget such as 50 kB/s", for the error about a malformed value
  bool or_number = false;      ///< a text key that also accepts an unquoted number; stored as text
  /// Value that `rivulet config init` writes in place of the default; "#..." is written as a comment.
  std::string_view sample = {};
  bool of_device = false;  ///< may differ between the devices of a group
};

/// An invalid combination of an entry's keys. Reported at the first of these keys that the user has set.
struct KeyFault {
  std::vector<std::string> keys;
  std::string message;
};

/// Values of an entry's own keys. A plain value, usable from any thread.
class Settings {
 public:
  using Texts = std::vector<std::string>;
  using Integers = std::vector<std::int64_t>;
  using Numbers = std::vector<double>;
  using Value = std::variant<double, std::int64_t, bool, std::string, Duration, Texts, Integers, Numbers>;

  void set(std::string name, Value value) { values_.insert_or_assign(std::move(name), std::move(value)); }
  [[nodiscard]] double number(std::string_view name) const { return get<double>(name); }
  [[nodiscard]] std::int64_t integer(std::string_view name) const { return get<std::int64_t>(name); }
  [[nodiscard]] bool flag(std::string_view name) const { return get<bool>(name); }
  [[nodiscard]] const std::string& text(std::string_view name) const { return get<std::string>(name); }
  [[nodiscard]] Duration duration(std::string_view name) const { return get<Duration>(name); }
  [[nodiscard]] const Texts& texts(std::string_view name) const { return get<Texts>(name); }
  [[nodiscard]] const Integers& integers(std::string_view name) const { return get<Integers>(name); }
  [[nodiscard]] const Numbers& numbers(std::string_view name) const { return get<Numbers>(name); }
  template <class T>
  [[nodiscard]] bool has(std::string_view name) const {
    const auto found = values_.find(name);
    return found != values_.end() && std::holds_alternative<T>(found->second);
  }
  /// Requires a key of the caller's own entry, with the right type; anything else is a bug.
  template <class T>
  [[nodiscard]] const T& get(std::string_view name) const {
    const auto found = values_.find(name);
    RIVULET_CHECK(found != values_.end(), "a setting was read but never set");
    const T* value = std::get_if<T>(&found->second);
    RIVULET_CHECK(value != nullptr, "a setting has a different type");
    return *value;
  }
  /// Returns only the settings of `keys`.
  [[nodiscard]] Settings of(std::span<const Key> keys) const {
    Settings out;
    for (const Key& key : keys)
      if (const auto found = values_.find(key.name); found != values_.end()) out.values_.insert(*found);
    return out;
  }
  bool operator==(const Settings&) const = default;

 private:
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace rivulet
