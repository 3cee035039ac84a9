#pragma once
#include <vector>

#include "runtime/config/value.h"

/// The table behind key_table() (private to config/): adds to each KeySpec the bounds and the target of its
/// value.
namespace rivulet::runtime {

/// Bounds of an integer, a number or a duration in seconds. For a list of integers, bounds of each item.
struct Bounds {
  double least = -1e300;
  double most = 1e300;
  bool above = false;  ///< exclusive lower bound
};

struct KeyRow {
  KeySpec spec;
  Bounds bounds;
  /// Stores a value returned by coerce() for this row; nullptr = load.cpp stores it.
  void (*set)(Config& config, const Value& value) = nullptr;
  bool of_entry = false;                          ///< key of a catalog entry: stored in Config::settings
  bool (*fits)(std::string_view text) = nullptr;  ///< check of the catalog entry's Key
  std::string_view form = {};
  bool or_number = false;
};

/// Types of KeySpec::type handled by coerce().
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
/// Finds a key by its name or a former name.
const KeyRow* find_row(const std::string& name);
/// Whether `path` names a table, such as "batch" or "decode.raw", but not "batch.tick".
bool is_table(const std::string& path);

inline constexpr const char* property_prefix = "source.kafka.properties.";
bool is_property(const std::string& key);
/// Whether the value of this property must never be printed.
bool is_secret_property(const std::string& key);

}  // namespace rivulet::runtime
