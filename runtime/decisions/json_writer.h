#pragma once
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/fields.h"
#include "core/time.h"
#include "sync/message/facts.h"
#include "sync/message/plan.h"

/// JSON of structs with a list of fields (private to decisions/; decision_parse.cpp decodes it): an object
/// with one member per field, in the order of the list. Durations are nanoseconds; enums are their names;
/// digests are 32 hexadecimal digits; cursors and partitions are arrays of numbers.
namespace rivulet::runtime {

template <class T>
concept AsArray = std::same_as<T, RowCursor> || std::same_as<T, PartitionId>;

/// Appends to `out` directly: every round writes a line while the train thread waits, and building a tree of
/// JSON values first takes twelve times as long.
class JsonWriter {
 public:
  explicit JsonWriter(std::string& out) : out_(out) {}
  /// Adds a member to the open object.
  void operator()(const char* name, const auto& value) {
    begin(name);
    put(value);
  }
  /// Begins a member; the next put writes its value.
  void begin(const char* name);
  void open(char bracket);
  void close(char bracket);

  template <std::integral T>
  void put(T value) {
    if constexpr (std::same_as<T, bool>)
      out_ += value ? "true" : "false";
    else if constexpr (std::is_signed_v<T>)
      put_signed(value);
    else
      put_unsigned(value);
  }
  /// Writes the fewest digits that restore the bits. Writes "nan", "inf" and "-inf" as strings, since JSON
  /// has no numbers for them.
  void put(double value) { put_real(value); }
  void put(float value) { put_real(value); }
  void put(std::string_view text);
  void put(const std::string& text) { put(std::string_view(text)); }
  void put(const Duration& value) { put(value.count()); }
  void put(const Digest& digest) { put(digest.hex()); }
  void put(sync::policy::Mode mode) { put(name_of(mode)); }
  void put(sync::policy::Retreat retreat) { put(name_of(retreat)); }
  template <class T>
  void put(const std::vector<T>& items) {
    put_list(items, [this](const T& item) { put(item); });
  }
  template <class T>
  void put(const std::optional<T>& item) {
    if (item)
      put(*item);
    else
      out_ += "null";
  }
  void put_list(const auto& items, auto put_one) {
    open('[');
    for (const auto& item : items) {
      separate();
      put_one(item);
    }
    close(']');
  }
  template <HasFields T>
  void put(const T& value) {
    open(AsArray<T> ? '[' : '{');
    fields(value, [this](const char* name, const auto& field) {
      if constexpr (AsArray<T>) {
        separate();
        put(field);
      } else {
        (*this)(name, field);
      }
    });
    close(AsArray<T> ? ']' : '}');
  }

 private:
  template <class T>
  void put_real(T value);
  void put_signed(std::int64_t value);
  void put_unsigned(std::uint64_t value);
  void separate();
  std::string& out_;
};

}  // namespace rivulet::runtime
