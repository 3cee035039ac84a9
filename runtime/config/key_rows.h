#pragma once
#include <vector>

#include "runtime/config/value.h"

/// The table behind key_table() (private to config/): besides the KeySpec, bounds and where the value goes.
namespace rivulet::runtime {

/// Of an integer, a number or the seconds of a duration; of every item of a list of integers.
struct Bounds {
  double least = -1e300;
  double most = 1e300;
  bool above = false;  ///< least itself is not allowed
};

struct KeyRow {
  KeySpec spec;
  Bounds bounds;
  /// Takes a value that coerce() has returned for this row; nullptr = load.cpp does it.
  void (*set)(Config& config, const Value& value) = nullptr;
  bool of_entry = false;                          ///< a Key of a catalog's entry: goes into Config::settings
  bool (*fits)(std::string_view text) = nullptr;  ///< as of that Key
  std::string_view form = {};
  bool or_number = false;
};

/// Types of KeySpec::type that coerce() knows.
namespace kind {
inline constexpr const char* text = "string";
inline constexpr const char* integer = "integer";
inline constexpr const char* number = "number";
inline constexpr const char* boolean = "boolean";
inline constexpr const char* duration = "duration";
inline constexpr const char* size = "size in bytes";
inline constexpr const char* offset = "string or integer";
inline constexpr const char* texts = "list of strings";
inline constexpr const char* integers = "list of integers";
inline constexpr const char* numbers = "number or list of numbers";
inline constexpr const char* partitions = "list of partitions";
}  // namespace kind

const std::vector<KeyRow>& key_rows();
/// Also by the name that a key had before.
const KeyRow* find_row(const std::string& name);
/// "batch" and "decode.raw" are tables of keys, "batch.tick" is none.
bool is_table(const std::string& path);

inline constexpr const char* property_prefix = "source.kafka.properties.";
bool is_property(const std::string& key);
/// Properties whose value must never be printed.
bool is_secret_property(const std::string& key);

}  // namespace rivulet::runtime
