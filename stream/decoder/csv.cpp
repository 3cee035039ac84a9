#include <algorithm>
#include <charconv>

#include "stream/decoder/base.h"
#include "stream/decoder/text_keys.h"
#include "stream/text_body.h"

namespace rivulet::stream {
namespace {

constexpr std::string_view csv_columns = "decode.csv.columns";
constexpr std::string_view csv_delimiter = "decode.csv.delimiter";

std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

/// Indices of the columns that a decoder needs, from 0.
struct Columns {
  std::vector<std::size_t> features;
  std::optional<std::size_t> target;
  std::vector<std::string> names;   ///< as configured, for messages: features, then the target
  std::size_t expected = 0;         ///< columns per line, 0 = any number
  std::optional<std::size_t> kind;  ///< the column that decode.csv.where filters by
  std::string kind_wanted;
};

/// One row per line. A line feed always ends a line, even inside quotes, so that a malformed line affects no
/// other line.
class CsvDecoder final : public DecoderBase {
 public:
  CsvDecoder(const DecodeConfig& config, RowShape shape, Columns columns)
      : DecoderBase(config, std::move(shape)),
        wanted_(std::move(columns)),
        delimiter_(config.settings.text(csv_delimiter).front()) {
    fields_.reserve(std::max<std::size_t>(wanted_.expected, 64));
  }

  [[nodiscard]] std::string feature(std::size_t column) const override { return wanted_.names[column]; }

 private:
  std::optional<DropReason> open_record(std::span<const std::byte> value) noexcept override {
    const TextBody body = text_body(value, TextKind::csv);
    if (body.binary) {
      describe(words_for_binary(*body.schema));
      return DropReason::malformed;
    }
    record_ = {reinterpret_cast<const char*>(value.data()), value.size()};
    rest_ = record_.substr(body.begin);
    skip_blank_lines();
    if (!rest_.empty()) return std::nullopt;
    describe("the record contains no line");
    return DropReason::malformed;
  }

  Decoded next_row(RowSlot out) noexcept override {
    if (rest_.empty()) return end();
    const std::size_t line_end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, line_end);
    rest_.remove_prefix(std::min(line_end + 1, rest_.size()));
    skip_blank_lines();
    if (const auto wrong = read_line(line, out)) return drop(*wrong);
    return row();
  }

  void skip_blank_lines() noexcept {
    while (!rest_.empty()) {
      const std::size_t line_end = std::min(rest_.find('\n'), rest_.size());
      if (!trim(rest_.substr(0, line_end)).empty()) return;
      rest_.remove_prefix(std::min(line_end + 1, rest_.size()));
    }
  }

  std::optional<DropReason> read_line(std::string_view line, RowSlot out) noexcept {
    if (!split(line)) return DropReason::malformed;
    if (wanted_.kind && !is_meant()) return DropReason::filtered;
    for (std::size_t i = 0; i < wanted_.features.size(); ++i)
      if (const auto wrong = feature_at(wanted_.features[i], i, out.features[i])) return wrong;
    if (wanted_.target) {
      if (const auto wrong = read_target(out.targets[0])) return wrong;
    }
    if (wanted_.expected == 0 || fields_.size() == wanted_.expected) return std::nullopt;
    describe("the line does not have the configured number of columns");
    return DropReason::wrong_shape;
  }

  std::optional<DropReason> read_target(float& out) noexcept {
    const std::size_t column = *wanted_.target;
    if (column >= fields_.size() || fields_[column].empty()) {
      describe("the line has no value for column", wanted_.names.back());
      return DropReason::missing_field;
    }
    const std::string_view text = fields_[column];
    if (has_class_names()) return class_into(out, one_quote_for_two(text));
    if (const auto x = target_in(text)) return target_into(out, *x);
    return unnamed_label(one_quote_for_two(text));
  }

  /// Replaces doubled quotes in a quoted field by single ones. Allocates only if the label is the longest so
  /// far.
  std::string_view one_quote_for_two(std::string_view text) noexcept {
    if (text.find("\"\"") == std::string_view::npos) return text;
    label_.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
      label_ += text[i];
      if (text.substr(i, 2) == "\"\"") ++i;
    }
    return label_;
  }

  bool is_meant() noexcept {
    if (*wanted_.kind < fields_.size() && one_quote_for_two(fields_[*wanted_.kind]) == wanted_.kind_wanted)
      return true;
    describe("decode.csv.where does not select this row");
    return false;
  }

  /// A line that ends before the column is malformed; only an empty field is a missing value.
  std::optional<DropReason> feature_at(std::size_t column, std::size_t feature, float& out) noexcept {
    std::optional<DropReason> wrong;
    if (column >= fields_.size()) {
      wrong = DropReason::missing_field;
    } else if (fields_[column].empty()) {
      wrong = nothing_into(out, feature);
    } else if (const auto x = number_in(fields_[column])) {
      wrong = feature_into(out, *x, feature);
    } else {
      wrong = DropReason::wrong_type;
    }
    if (wrong) describe_feature(*wrong, column, feature);
    return wrong;
  }

  void describe_feature(DropReason reason, std::size_t column, std::size_t feature) noexcept {
    Culprit culprit{.name = wanted_.names[feature], .column = column};
    if (column < fields_.size() && !fields_[column].empty()) {
      culprit.token = "\"" + std::string(fields_[column].substr(0, 60)) + "\"";
      culprit.byte = static_cast<std::size_t>(fields_[column].data() - record_.data());
    }
    describe(reason, culprit);
  }

  /// Splits a line into fields. Returns false if a quote is not closed or text follows the closing quote.
  bool split(std::string_view line) noexcept {
    fields_.clear();
    if (line.ends_with('\r')) line.remove_suffix(1);
    while (true) {
      std::size_t field_end = std::min(line.find(delimiter_), line.size());
      std::string_view field = trim(line.substr(0, field_end));
      if (field.starts_with('"') && !quoted(line, field, field_end)) return false;
      fields_.push_back(field);
      if (field_end >= line.size()) return true;
      line.remove_prefix(field_end + 1);
    }
  }

  /// Reads a field that begins with a quote. Keeps doubled quotes inside: numbers contain none, and
  /// read_target() unescapes those in labels.
  bool quoted(std::string_view line, std::string_view& field, std::size_t& field_end) noexcept {
    const std::size_t open = line.find('"');
    std::size_t close = line.find('"', open + 1);
    while (close != std::string_view::npos && close + 1 < line.size() && line[close + 1] == '"')
      close = line.find('"', close + 2);
    if (close == std::string_view::npos) {
      describe("a quote is not closed", line);
      return false;
    }
    field_end = std::min(line.find(delimiter_, close + 1), line.size());
    field = trim(line.substr(open + 1, close - open - 1));
    if (trim(line.substr(close + 1, field_end - close - 1)).empty()) return true;
    describe("text after a closing quote", line);
    return false;
  }

  // constant
  Columns wanted_;
  char delimiter_;
  // current record
  std::string_view record_;
  std::string_view rest_;
  std::vector<std::string_view> fields_;
  std::string label_;
};

Error wrong_column(std::string_view key, const std::string& column, std::string_view why) {
  return {ErrorCode::invalid_config,
          "decode.csv." + std::string(key) + ": column \"" + column + "\" " + std::string(why)};
}

std::optional<std::size_t> as_index(std::string_view text) {
  std::size_t index = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (code != std::errc{} || end != text.data() + text.size() || index > 1'000'000) return std::nullopt;
  return index;
}

/// A column as configured: a name in decode.csv.columns, a number from 0, or "4:10" for columns 4 to 9.
Result<std::pair<std::size_t, std::size_t>> column_range(const DecodeConfig& config, std::string_view key,
                                                         const std::string& column) {
  const auto& names = config.settings.texts(csv_columns);
  const auto named = std::find(names.begin(), names.end(), column);
  if (named != names.end()) {
    const auto index = static_cast<std::size_t>(named - names.begin());
    return std::pair{index, index + 1};
  }
  const auto colon = column.find(':');
  const auto first = as_index(std::string_view(column).substr(0, colon));
  const auto last = colon == std::string::npos ? first : as_index(std::string_view(column).substr(colon + 1));
  if (!first || !last)
    return wrong_column(key, column,
                        names.empty() ? "is not a number: list the names of all columns in decode.csv.columns"
                                      : "is not in decode.csv.columns");
  const std::size_t end = colon == std::string::npos ? *last + 1 : *last;
  if (end <= *first) return wrong_column(key, column, "is an empty range");
  if (!names.empty() && end > names.size())
    return wrong_column(key, column, "is beyond the last column in decode.csv.columns");
  return std::pair{*first, end};
}

Result<std::size_t> single_column(const DecodeConfig& config, std::string_view key,
                                  const std::string& column) {
  const auto range = column_range(config, key, column);
  if (!range) return range.error();
  if (range.value().second - range.value().first != 1)
    return wrong_column(key, column, "must be a single column");
  return range.value().first;
}

Result<Columns> columns_of(const DecodeConfig& config) {
  const auto& names = config.settings.texts(csv_columns);
  Columns columns{.expected = names.size()};
  for (const auto& feature : config.features) {
    const auto range = column_range(config, "features", feature);
    if (!range) return range.error();
    for (std::size_t i = range.value().first; i < range.value().second; ++i) {
      columns.features.push_back(i);
      const bool alone = range.value().second - range.value().first == 1;
      const std::string name = names.empty() ? std::to_string(i) : names[i];
      columns.names.push_back(alone ? feature : name);
    }
  }
  if (columns.features.empty())
    return Error{ErrorCode::invalid_config, "decode.csv.features is empty: list the columns to learn from"};
  if (!config.target.empty()) {
    const auto target = single_column(config, "target", config.target);
    if (!target) return target.error();
    columns.target = target.value();
    columns.names.push_back(config.target);
  }
  if (config.where.empty()) return columns;
  auto where = parse_where(config.where);
  if (!where) return Error{ErrorCode::invalid_config, "decode.csv.where: " + where.error().message};
  const auto kind = single_column(config, "where", where.value().field);
  if (!kind) return kind.error();
  columns.kind = kind.value();
  columns.kind_wanted = where.value().value;
  return columns;
}

Result<std::unique_ptr<Decoder>> make(const DecodeConfig& config) {
  const std::string& delimiter = config.settings.text(csv_delimiter);
  if (delimiter.size() != 1 || delimiter == "\n" || delimiter == "\"" || delimiter == "\r")
    return Error{ErrorCode::invalid_config,
                 "decode.csv.delimiter must be one character, and neither a quote nor a line break"};
  if (delimiter.front() == config.decimal)
    return Error{ErrorCode::invalid_config, "decode.csv.delimiter and decode.csv.decimal are both \"" +
                                                delimiter +
                                                "\": a number would end at its decimal separator"};
  auto columns = columns_of(config);
  if (!columns) return columns.error();
  const std::size_t count = columns.value().features.size();
  auto shape = row_shape_of(config, count, columns.value().target.has_value());
  if (!shape) return shape.error();
  if (shape.value().columns() != count)
    return Error{ErrorCode::invalid_config,
                 "decode.csv.shape describes " + std::to_string(shape.value().columns()) +
                     " features, but the number of columns in decode.csv.features is " +
                     std::to_string(count)};
  return std::unique_ptr<Decoder>(
      new CsvDecoder(config, std::move(shape).value(), std::move(columns).value()));
}

constexpr Key csv_keys[] = {
    {.name = "decode.csv.features",
     .type = KeyType::texts,
     .text = "[]",
     .help = "feature columns: names, numbers from 0, or ranges of numbers such as 4:10 (end excluded)",
     .sample = "#[\"temp\", \"rms\"]"},
    {.name = "decode.csv.target",
     .type = KeyType::text,
     .text = "\"\"",
     .help = "column of the label or target: its name, or its number from 0",
     .sample = "#\"label\""},
    {.name = "decode.csv.classes",
     .type = KeyType::texts,
     .text = "[]",
     .help = "text labels, in the order of their classes from 0; sets model.classes",
     .sample = "#[\"ok\", \"fault\"]"},
    {.name = csv_columns,
     .type = KeyType::texts,
     .text = "[]",
     .help = "names of all columns, in order",
     .sample = "#[\"time\", \"temp\", \"rms\", \"label\"]"},
    {.name = csv_delimiter,
     .type = KeyType::text,
     .text = "\",\"",
     .help = "column separator, one character",
     .least = 1,
     .most = 1,
     .sample = "#\",\""},
    shape_key("decode.csv.shape"),
    scale_key("decode.csv.scale"),
    shift_key("decode.csv.shift"),
    decimal_key("decode.csv.decimal", "decimal separator of numbers: . or ,"),
    where_key("decode.csv.where",
              "COLUMN = VALUE: selects the rows with this text in this column; others are excluded without "
              "an error"),
    missing_key("decode.csv.missing"),
    fill_key("decode.csv.fill"),
};

}  // namespace

extern const DecoderEntry decoder_csv;
const DecoderEntry decoder_csv{"csv", "one row per line, columns by number from 0 or by name", make,
                               csv_keys};

}  // namespace rivulet::stream
