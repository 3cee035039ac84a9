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

/// A configuration key that belongs to the part that reads it: an optimizer, a controller, a compressor, a
/// decoder. Its entry in the catalog lists it, and file, environment, `--set`, help, template, group hash and
/// "did you mean" know it from there (runtime/config/).
struct Key {
  std::string_view name;  ///< "train.optimizer.beta1"
  KeyType type = KeyType::number;
  std::string_view text;  ///< the default, as TOML
  std::string_view help;
  double least = -1e300;  ///< of an integer, a number, the seconds of a duration, the characters of a text;
                          ///< of each in a list
  double most = 1e300;
  bool above = false;             ///< `least` itself is not allowed
  std::string_view choices = {};  ///< of a text: "a | b"; empty = any. Of numbers: words in place of them
  /// Of a text that says more than a name: whether it can be read; null = any.
  bool (*fits)(std::string_view text) = nullptr;
  std::string_view form = {};  ///< "like 50 kB/s", for an error about a value that does not fit
  bool or_number = false;      ///< of a text: a number may be written without quotes; it is kept as text
  /// What `rivulet config init` writes in place of the default; "#..." is written as a comment.
  std::string_view sample = {};
  bool of_device = false;  ///< may differ between the devices of a group
};

/// What is wrong with the keys of an entry together: complained about at the first that somebody wrote.
struct KeyFault {
  std::vector<std::string> keys;
  std::string message;
};

/// Values of such keys: what a part is given besides what all its kind share. A value; any thread.
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
  [[nodiscard]] bool holds(std::string_view name) const {
    const auto found = values_.find(name);
    return found != values_.end() && std::holds_alternative<T>(found->second);
  }
  /// A part reads only its own keys, and those are set: anything else is a bug.
  template <class T>
  [[nodiscard]] const T& get(std::string_view name) const {
    const auto found = values_.find(name);
    RIVULET_CHECK(found != values_.end(), "a setting that nobody made");
    const T* value = std::get_if<T>(&found->second);
    RIVULET_CHECK(value != nullptr, "a setting of another type");
    return *value;
  }
  /// Those of `keys` alone.
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
