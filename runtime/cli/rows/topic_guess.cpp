#include "runtime/cli/rows/topic_guess.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "core/printable.h"
#include "runtime/cli/text.h"

namespace rivulet::runtime::cli {
namespace {

constexpr std::size_t most_classes = 100;
constexpr std::size_t most_shown = 12;

/// Typical names of class fields, most specific first.
constexpr std::array class_names{"label",   "class",    "state",   "status",  "fault",  "anomaly",
                                 "failure", "category", "outcome", "species", "verdict"};
/// Further typical names of targets.
constexpr std::array other_target_names{"target", "quality", "y"};
/// Typical names of fields that identify or order rows; useless as features.
constexpr std::array order_names{"id",  "ts",   "time",  "timestamp", "datetime", "date",
                                 "seq", "uuid", "epoch", "sequence",  "offset",   "index"};

/// Returns the last part of a path in lower case.
std::string last_name(const std::string& path) {
  std::string name = path.substr(path.rfind('.') + 1);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

bool tells_order(const GuessedField& field) {
  const std::string name = last_name(field.name);
  return std::any_of(order_names.begin(), order_names.end(), [&](const std::string& word) {
    return name == word || name.ends_with("_" + word) || name.starts_with(word + "_");
  });
}

std::string joined(const std::vector<std::string>& names) {
  const bool cut = names.size() > most_shown;
  const auto shown = std::vector(names.begin(), cut ? names.begin() + most_shown : names.end());
  return fmt::format("{}", fmt::join(shown, ", ")) +
         (cut ? fmt::format(" and {} more", names.size() - most_shown) : "");
}

bool few_values(const GuessedField& field) {
  const auto kinds = field.values.in_order().size();
  return kinds >= 2 && kinds <= 20 && kinds * 3 <= field.rows;
}

const GuessedField* named_target(const GuessedFields& fields) {
  if (!fields.named) return nullptr;
  std::vector<std::string> names(class_names.begin(), class_names.end());
  names.insert(names.end(), other_target_names.begin(), other_target_names.end());
  for (const auto& name : names)
    for (const auto& field : fields.all)
      if (last_name(field.name) == name && field.single() && field.rows * 2 >= fields.rows) return &field;
  return nullptr;
}

/// Returns the only text field with few distinct values; for unnamed columns, the last column, by convention.
const GuessedField* likely_target(const GuessedFields& fields) {
  const GuessedField* found = nullptr;
  std::size_t likely = 0;
  for (const auto& field : fields.all) {
    if (!field.single() || field.texts != field.rows || !few_values(field) || tells_order(field)) continue;
    found = &field;
    ++likely;
  }
  if (likely == 1) return found;
  return fields.named || likely > 1 || !fields.all.back().single() ? nullptr : &fields.all.back();
}

Result<const GuessedField*> target_of(const GuessedFields& fields, const std::string& wanted) {
  std::vector<std::string> names;
  for (const auto& field : fields.all) {
    if (field.name == wanted && field.single()) return &field;
    if (field.single()) names.push_back(field.name);
  }
  const char* kind = fields.format == "csv" ? "columns" : "fields";
  if (!wanted.empty())
    return Error{ErrorCode::unavailable,
                 fmt::format("--target '{}' is not one of the {} that have one value per row: {}", wanted,
                             kind, joined(names))};
  if (const auto* named = named_target(fields)) return named;
  if (const auto* likely = likely_target(fields)) return likely;
  return Error{ErrorCode::unavailable,
               fmt::format("cannot guess which field to predict; choose one with --target NAME from the "
                           "{}: {}",
                           kind, joined(names))};
}

void say(Guess& guess, const std::string& key, const std::string& value) {
  guess.keys.emplace_back(key, value);
}

/// Returns the number of classes if the labels are 0, 1, 2, ... without large gaps, so that they can be class
/// numbers.
std::optional<std::size_t> class_numbers(const GuessedField& field) {
  const auto labels = field.values.in_order();
  for (const auto& label : labels) {
    const auto x = label_number(label);
    if (!x || *x < 0 || *x != std::floor(*x)) return std::nullopt;
  }
  const double highest = *label_number(labels.back());
  if (highest + 1 > 2.0 * static_cast<double>(labels.size()) || highest < 1) return std::nullopt;
  return static_cast<std::size_t>(highest) + 1;
}

bool is_measured(const GuessedField& field) {
  if (field.texts > 0) return false;
  const auto values = field.values.in_order();
  const bool whole = std::all_of(values.begin(), values.end(), [](const std::string& value) {
    const auto x = label_number(value);
    return x && *x == std::floor(*x);
  });
  const bool named = values.size() <= most_classes && std::find(class_names.begin(), class_names.end(),
                                                                last_name(field.name)) != class_names.end();
  return !whole || !(few_values(field) || named);
}

Status add_classes(Guess& guess, const GuessedFields& fields, const GuessedField& target) {
  const auto labels = target.values.in_order();
  if (labels.size() < 2)
    return Error{ErrorCode::unavailable,
                 fmt::format("'{}' is '{}' in every row: a classifier needs rows of two or more classes; "
                             "read more rows (--rows), or choose a different field (--target)",
                             target.name, labels.front())};
  if (labels.size() > most_classes)
    return Error{ErrorCode::unavailable, fmt::format("'{}' has {} different texts in {} rows, too many for "
                                                     "class labels; choose a different field (--target)",
                                                     target.name, labels.size(), target.rows)};
  say(guess, "train.loss", "\"cross_entropy\"");
  const auto numbers = target.texts == 0 ? class_numbers(target) : std::nullopt;
  if (numbers)
    say(guess, "model.classes", std::to_string(*numbers));
  else
    say(guess, "decode." + fields.format + ".classes", toml_list(labels));
  guess.notes.push_back(fmt::format("to predict: '{}', one of {} classes: {}", target.name,
                                    numbers.value_or(labels.size()), joined(labels)));
  return ok();
}

void add_regression(Guess& guess, const GuessedField& target) {
  say(guess, "train.loss", "\"mse\"");
  guess.notes.push_back(fmt::format("to predict: '{}', a number", target.name));
}

std::string share_of(std::uint64_t part, std::uint64_t all) {
  return fmt::format("{:.3g} %", 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

/// Adds notes on a feature that is missing in some rows, or has values that may mean "missing".
void add_gaps(Guess& guess, std::vector<std::string>& gaps, const GuessedFields& fields,
              const GuessedField& field) {
  if (const auto lack = fields.rows - field.rows; lack > 0)
    gaps.push_back(
        fmt::format("{} is missing in {} of {} rows ({}): the key fill sets the replacement value (default: "
                    "the feature's mean)",
                    field.name, lack, fields.rows, share_of(lack, fields.rows)));
  const auto codes = codes_of(field);
  if (codes.empty()) return;
  guess.codes.insert(codes.begin(), codes.end());
  gaps.push_back(fmt::format(
      "{} often has the value {}, far from all other values: does this code mean that the value is missing?",
      field.name, fmt::join(codes, " or ")));
}

/// Returns fields other than the target that are numeric in at least half of the rows. Adds notes on why
/// others are omitted.
std::vector<std::string> features_of(Guess& guess, const GuessedFields& fields, const GuessedField& target) {
  std::vector<std::string> features;
  std::vector<std::string> order;
  std::vector<std::string> others;
  std::vector<std::string> gaps;
  for (const auto& field : fields.all) {
    if (&field == &target) continue;
    if (!field.feature_of(fields.rows))
      others.push_back(field.name);
    else if (tells_order(field))
      order.push_back(field.name);
    else {
      features.push_back(field.length ? fmt::format("{}[0:{}]", field.name, *field.length) : field.name);
      add_gaps(guess, gaps, fields, field);
    }
  }
  if (!features.empty()) guess.notes.push_back("features: " + joined(features));
  if (!order.empty())
    guess.notes.push_back("omitted, since their names denote a time or an id: " + joined(order));
  if (!others.empty())
    guess.notes.push_back("omitted, since they are not numeric or occur in less than half of the rows: " +
                          joined(others));
  for (std::size_t i = 0; i < gaps.size() && i < most_shown; ++i) guess.notes.push_back(gaps[i]);
  if (gaps.size() > most_shown)
    guess.notes.push_back(
        fmt::format("and {} more notes on missing values, or on codes that may stand for them",
                    gaps.size() - most_shown));
  if (!guess.codes.empty())
    guess.notes.push_back(fmt::format("if these codes stand for missing values: decode.{}.missing = [{}]",
                                      fields.format, fmt::join(guess.codes, ", ")));
  return features;
}

Result<Guess> guess_of(const GuessedFields& fields, const std::string& wanted) {
  const auto found = target_of(fields, wanted);
  if (!found) return found.error();
  const GuessedField& target = *found.value();
  Guess guess{fields.format, fields.besides, {}};
  say(guess, "decode.format", toml_string(fields.format));
  const auto features = features_of(guess, fields, target);
  if (features.empty())
    return Error{
        ErrorCode::unavailable,
        fmt::format(
            "no features to learn from: no field other than '{}' is numeric in half of the rows or more",
            target.name)};
  const std::string table = "decode." + fields.format;
  say(guess, table + ".features", toml_list(features));
  say(guess, table + ".target", toml_string(target.name));
  if (is_measured(target))
    add_regression(guess, target);
  else if (const auto added = add_classes(guess, fields, target); !added)
    return added.error();
  if (target.rows < fields.rows)
    guess.notes.push_back(fmt::format("{} of {} rows have no '{}': devices drop these rows",
                                      fields.rows - target.rows, fields.rows, target.name));
  if (fields.broken > 0)
    guess.notes.push_back(
        fmt::format("{} records or lines are not valid {}: devices drop them", fields.broken, fields.format));
  return guess;
}

std::string sizes_of(const std::vector<std::string>& records) {
  const auto [least, most] = std::minmax_element(
      records.begin(), records.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return least->size() == most->size() ? fmt::format("{} bytes", least->size())
                                       : fmt::format("{} to {} bytes", least->size(), most->size());
}

/// Names and labels are external input: escapes unprintable characters.
Result<Guess> for_people(Result<Guess> guess) {
  if (!guess) return Error{guess.error().code, printable(guess.error().message)};
  for (auto& note : guess.value().notes) note = printable(note);
  return guess;
}

}  // namespace

Result<Guess> guess_rows(const std::vector<std::string>& records, const std::string& target) {
  if (records.empty()) return Error{ErrorCode::unavailable, "the topic has no records yet"};
  const auto bodies = bodies_of(records);
  if (const auto fields = json_fields(bodies)) return for_people(guess_of(*fields, target));
  if (const auto why = no_rows(records); !why.empty()) return Error{ErrorCode::unavailable, why};
  if (const auto fields = csv_fields(bodies)) return for_people(guess_of(*fields, target));
  if (auto guess = raw_guess(records)) return std::move(*guess);
  return Error{ErrorCode::unavailable,
               fmt::format("records of {} are neither JSON nor CSV, and their binary layout cannot be "
                           "guessed; set decode.raw.label, decode.raw.features and decode.raw.shape",
                           sizes_of(records))};
}

}  // namespace rivulet::runtime::cli
