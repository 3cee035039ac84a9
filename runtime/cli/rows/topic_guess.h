#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "runtime/cli/rows/label_counts.h"

/// What a configuration for a topic could hold, guessed from some of its records. Pure.
namespace rivulet::runtime::cli {

/// Keys with their values as TOML, and what a person should know of them.
struct Guess {
  std::string format;                                     ///< json | csv | raw
  std::vector<std::pair<std::string, std::string>> keys;  ///< in no order that matters
  std::vector<std::string> notes;                         ///< "features: ... "
  std::set<double> codes = {};                            ///< numbers that may say so
};

/// `records`: their values, oldest first. `target`: field or column to predict; empty: guessed. Errors:
/// unavailable (which format, or what to predict, cannot be guessed: names what was seen).
Result<Guess> guess_rows(const std::vector<std::string>& records, const std::string& target);

/// One field of JSON rows, or column of CSV rows, over all of them. Private to topic_guess*.
struct GuessedField {
  std::string name;        ///< as the configuration calls it
  std::uint64_t rows = 0;  ///< that have it, and not as null
  std::uint64_t numbers = 0;
  std::uint64_t texts = 0;            ///< or true or false
  std::uint64_t readable = 0;         ///< of texts: numbers in texts, true and false, which features may be
  std::optional<std::size_t> length;  ///< of a list of numbers, the same in all rows
  bool mixed = false;                 ///< a nested list, lists of several lengths
  LabelCounts values;                 ///< of single numbers, texts, true and false

  /// A number or list wherever it is, and it is in half of N rows at least.
  [[nodiscard]] bool feature_of(std::uint64_t all_rows) const {
    return !mixed && texts == readable && rows > 0 && rows * 2 >= all_rows &&
           (length || numbers + texts == rows);
  }
  [[nodiscard]] bool single() const { return !mixed && !length && rows > 0; }
};

struct GuessedFields {
  std::string format;
  std::vector<GuessedField> all;
  std::uint64_t rows = 0;
  std::uint64_t broken = 0;                                  ///< records or lines that are not rows
  bool named = true;                                         ///< false: columns have numbers only
  std::vector<std::pair<std::string, std::string>> besides;  ///< keys that the format needs
};

/// nullopt: the records are not of this format.
std::optional<GuessedFields> json_fields(const std::vector<std::string>& records);
std::optional<GuessedFields> csv_fields(const std::vector<std::string>& records);
std::optional<Guess> raw_guess(const std::vector<std::string>& records);

/// Text of the records without what lies around it (stream/text_body.h), as decoders read it.
std::vector<std::string> bodies_of(const std::vector<std::string>& records);
/// Why records of these kinds are rows of no format, if most are: binary in Confluent's frame, JSON that is
/// no object. Empty: they may be.
std::string no_rows(const std::vector<std::string>& records);

/// Numbers that may say that there is no value: like -999 or 65535, several times, far from all others.
std::vector<double> codes_of(const GuessedField& field);

}  // namespace rivulet::runtime::cli
