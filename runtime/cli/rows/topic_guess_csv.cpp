#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "runtime/cli/rows/topic_guess.h"
#include "runtime/cli/text.h"

namespace rivulet::runtime::cli {
namespace {

using Line = std::vector<std::string>;

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// Splits a line. Quoted fields may contain the delimiter; "" in quotes is one quote.
Line fields_of(const std::string& line, char delimiter) {
  Line out(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted && c == '"' && i + 1 < line.size() && line[i + 1] == '"')
      out.back() += line[i++];
    else if (c == '"' && (quoted || trimmed(out.back()).empty()))
      quoted = !quoted;
    else if (c == delimiter && !quoted)
      out.emplace_back();
    else
      out.back() += c;
  }
  for (auto& field : out) field = trimmed(field);
  return out;
}

std::vector<std::string> lines_of(const std::vector<std::string>& records) {
  std::vector<std::string> lines;
  for (const auto& record : records)
    for (const auto& line : split(record, '\n'))
      if (!trimmed(line).empty()) lines.push_back(line);
  return lines;
}

/// True if the text contains no control characters other than tab and CR.
bool is_text(const std::vector<std::string>& lines) {
  return !lines.empty() && std::all_of(lines.begin(), lines.end(), [](const std::string& line) {
    return std::all_of(line.begin(), line.end(), [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte >= 0x20 || c == '\t' || c == '\r';
    });
  });
}

struct Table {
  char delimiter = ',';
  std::size_t columns = 0;
  std::vector<Line> rows;
  std::uint64_t broken = 0;
};

/// Splits lines at a delimiter. Rows are the lines with the most frequent number of fields.
Table cut(const std::vector<std::string>& lines, char delimiter) {
  Table table{.delimiter = delimiter};
  std::map<std::size_t, std::size_t> counts;
  std::vector<Line> all;
  for (const auto& line : lines) {
    all.push_back(fields_of(line, delimiter));
    ++counts[all.back().size()];
  }
  table.columns = std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
                    return a.second < b.second;
                  })->first;
  for (auto& line : all) {
    if (line.size() == table.columns)
      table.rows.push_back(std::move(line));
    else
      ++table.broken;
  }
  return table;
}

std::optional<Table> best_table(const std::vector<std::string>& lines) {
  std::optional<Table> best;
  for (const char delimiter : {',', ';', '\t', '|'}) {
    auto table = cut(lines, delimiter);
    if (table.columns < 2 || table.broken * 5 > lines.size()) continue;
    if (!best || table.columns > best->columns) best = std::move(table);
  }
  return best;
}

/// Finds the header: a line without numbers in a table whose other lines have some.
std::optional<std::size_t> heading_of(const Table& table) {
  const auto numbers = [](const Line& line) {
    return std::count_if(line.begin(), line.end(), [](const auto& f) { return label_number(f).has_value(); });
  };
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const Line& line = table.rows[i];
    Line sorted = line;
    std::sort(sorted.begin(), sorted.end());
    const bool names = numbers(line) == 0 && !sorted.front().empty() &&
                       std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
    const std::size_t other = i == 0 ? 1 : 0;
    if (names && other < table.rows.size() && numbers(table.rows[other]) > 0) return i;
  }
  return std::nullopt;
}

/// Matches the decoders' parsing.
bool is_truth(const std::string& text) {
  constexpr std::array words{"true", "True", "TRUE", "false", "False", "FALSE"};
  return std::ranges::find(words, text) != words.end();
}

}  // namespace

std::optional<GuessedFields> csv_fields(const std::vector<std::string>& records) {
  const auto lines = lines_of(records);
  if (!is_text(lines)) return std::nullopt;
  auto table = best_table(lines);
  if (!table) return std::nullopt;
  GuessedFields fields{.format = "csv"};
  fields.broken = table->broken;
  const auto heading = heading_of(*table);
  const Line names = heading ? table->rows[*heading] : Line{};
  fields.named = heading.has_value();
  for (std::size_t i = 0; i < table->columns; ++i)
    fields.all.push_back({.name = heading ? names[i] : std::to_string(i)});
  for (const auto& line : table->rows) {
    if (line == names) {
      ++fields.broken;
      continue;
    }
    ++fields.rows;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i].empty()) continue;
      auto& field = fields.all[i];
      ++field.rows;
      const bool number = label_number(line[i]).has_value();
      ++(number ? field.numbers : field.texts);
      field.readable += !number && is_truth(line[i]) ? 1 : 0;
      field.values.add(line[i]);
    }
  }
  fields.besides.emplace_back("decode.csv.delimiter", toml_string(std::string(1, table->delimiter)));
  if (heading) fields.besides.emplace_back("decode.csv.columns", toml_list(names));
  return fields;
}

}  // namespace rivulet::runtime::cli
