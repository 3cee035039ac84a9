#include "stream/text_records.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "stream/decoder/base.h"
#include "stream/text_body.h"

namespace rivulet::stream {
namespace {

constexpr std::string_view blanks = " \t\r\n";

Error wrong_line(const std::string& path, std::size_t line, const std::string& why) {
  return {ErrorCode::bad_record, path + ", line " + std::to_string(line) + ": " + why};
}

/// Calls `use(begin, line, number)` for every non-blank line, without its line end; stops at an error.
template <class Use>
Status each_line(std::string_view text, Use use) {
  std::size_t number = 0;
  for (std::size_t begin = byte_order_mark(text); begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number;
    if (line.find_first_not_of(blanks) != std::string_view::npos)
      if (Status status = use(begin, line, number); !status) return status;
    begin = end + 1;
  }
  return ok();
}

struct Fields {
  std::size_t count = 1;
  bool any_number = false;
  bool open_quote = false;
};

/// Accepts both decimal separators: the decoder applies the configured one.
bool is_number(std::string_view text) {
  return parse_number(text).has_value() || parse_number(text, ',').has_value();
}

/// Counts fields with the delimiter guessed from the first line; the decoder applies the configured one.
Fields look_at(std::string_view line, char delimiter) {
  Fields fields;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') fields.open_quote = !fields.open_quote;
    if (i < line.size() && (line[i] != delimiter || fields.open_quote)) continue;
    const auto first = std::min(line.find_first_not_of(" \t\"", begin), i);
    const auto last = line.substr(first, i - first).find_last_not_of(" \t\"");
    if (last != std::string_view::npos) fields.any_number |= is_number(line.substr(first, last + 1));
    fields.count += i < line.size() ? 1 : 0;
    begin = i + 1;
  }
  return fields;
}

char likely_delimiter(std::string_view line) {
  char best = ',';
  for (const char candidate : {';', '\t', '|'})
    if (std::count(line.begin(), line.end(), candidate) > std::count(line.begin(), line.end(), best))
      best = candidate;
  return best;
}

/// Positions of the objects in an array, found by counting brackets outside strings. `text` must be valid
/// JSON.
std::vector<TextRecord> elements(std::string_view text) {
  std::vector<TextRecord> records;
  int depth = 0;
  bool in_string = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth == 2) begin = i;
    } else if (c == '}' || c == ']') {
      if (depth-- == 2) records.push_back({.begin = begin, .size = i + 1 - begin});
    }
  }
  return records;
}

Result<std::vector<TextRecord>> array_records(const std::string& path, std::string_view text) {
  const auto parsed = nlohmann::json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return wrong_line(path, 1, "begins an array, but the file is not valid JSON");
  for (std::size_t i = 0; i < parsed.size(); ++i)
    if (!parsed[i].is_object())
      return Error{ErrorCode::bad_record,
                   path + ", element " + std::to_string(i) + ": a record must be an object"};
  return elements(text);
}

}  // namespace

Result<std::vector<TextRecord>> csv_records(const std::string& path, std::string_view text) {
  std::vector<TextRecord> records;
  std::size_t columns = 0;
  char delimiter = ',';
  const auto status =
      each_line(text, [&](std::size_t begin, std::string_view line, std::size_t number) -> Status {
        const bool first = columns == 0;
        if (first) delimiter = likely_delimiter(line);
        const Fields fields = look_at(line, delimiter);
        if (fields.open_quote) return wrong_line(path, number, "a quote is not closed");
        if (first) columns = fields.count;
        if (fields.count != columns)
          return wrong_line(
              path, number,
              std::to_string(fields.count) + " columns, the first line has " + std::to_string(columns));
        if (!first || fields.any_number) records.push_back({.begin = begin, .size = line.size()});
        return ok();
      });
  if (!status) return status.error();
  return records;
}

Result<std::vector<TextRecord>> json_records(const std::string& path, std::string_view text) {
  const auto first = text.find_first_not_of(blanks, byte_order_mark(text));
  if (first != std::string_view::npos && text[first] == '[') return array_records(path, text);
  std::vector<TextRecord> records;
  const auto status =
      each_line(text, [&](std::size_t begin, std::string_view line, std::size_t number) -> Status {
        if (line.find_first_not_of(blanks) == std::string_view::npos) return ok();
        if (line[line.find_first_not_of(blanks)] != '{' || !nlohmann::json::accept(line))
          return wrong_line(path, number, "not a JSON object (one object per line)");
        records.push_back({.begin = begin, .size = line.size()});
        return ok();
      });
  if (!status) return status.error();
  return records;
}

}  // namespace rivulet::stream
