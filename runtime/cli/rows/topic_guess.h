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

/// Guesses a configuration from a sample of a topic's records. Pure.
namespace rivulet::runtime::cli {

/// Keys with TOML values, and notes for the user.
struct Guess {
  std::string format;                                     ///< json | csv | raw
  std::vector<std::pair<std::string, std::string>> keys;  ///< unordered
  std::vector<std::string> notes;                         ///< "features: ... "
  std::set<double> codes = {};                            ///< possible codes for a missing value
};

/// `records`: values, oldest first. `target`: field or column to predict; empty: guessed. Errors: unavailable
/// (format or target cannot be guessed; describes the records).
Result<Guess> guess_rows(const std::vector<std::string>& records, const std::string& target);

/// Statistics of one field of JSON rows, or column of CSV rows. Private to topic_guess*.
struct GuessedField {
  std::string name;        ///< name as in the configuration
  std::uint64_t rows = 0;  ///< rows with a value other than null
  std::uint64_t numbers = 0;
  std::uint64_t texts = 0;            ///< includes true and false
  std::uint64_t readable = 0;         ///< texts usable as features: numeric text, true and false
  std::optional<std::size_t> length;  ///< length of a list of numbers, if equal in all rows
  bool mixed = false;                 ///< nested lists, or lists of different lengths
  LabelCounts values;                 ///< single numbers, texts, true and false

  /// True if the field is a number or a list of numbers and occurs in at least half of the rows.
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
  bool named = true;                                         ///< false if columns have only indices
  std::vector<std::pair<std::string, std::string>> besides;  ///< further keys of the format
};

/// Return nullopt if the records do not have this format.
std::optional<GuessedFields> json_fields(const std::vector<std::string>& records);
std::optional<GuessedFields> csv_fields(const std::vector<std::string>& records);
std::optional<Guess> raw_guess(const std::vector<std::string>& records);

/// Returns the texts without framing (stream/text_body.h), as decoders read them.
std::vector<std::string> bodies_of(const std::vector<std::string>& records);
/// Explains why most records fit no format: binary in Confluent's framing, or JSON without objects. Empty if
/// neither applies.
std::string no_rows(const std::vector<std::string>& records);

/// Returns values that may mean "missing": known codes such as -999 or 65535 that are repeated and far from
/// all other values.
std::vector<double> codes_of(const GuessedField& field);

}  // namespace rivulet::runtime::cli
