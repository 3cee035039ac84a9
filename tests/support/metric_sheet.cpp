#include "tests/support/metric_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "core/check.h"
#include "tests/support/places.h"
#include "tests/support/temp_dir.h"

namespace rivulet::testing {
namespace {

constexpr std::string_view prefix = "rivulet_";

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::abs(a - b) <= 1e-10 * std::max(std::abs(a), std::abs(b)) + 1e-12;
}

/// Name of a series' metric: without labels and without the suffix of a histogram.
std::string metric_of(const std::string& series) {
  std::string name = series.substr(0, series.find('{'));
  for (const std::string_view part : {"_sum", "_count"})
    if (name.ends_with(part)) name.resize(name.size() - part.size());
  return name;
}

}  // namespace

MetricSheet read_sheet(const std::string& scrape) {
  MetricSheet sheet;
  std::istringstream lines(scrape);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(prefix) || line.find("_bucket{") != std::string::npos) continue;
    const auto blank = line.rfind(' ');
    sheet[line.substr(prefix.size(), blank - prefix.size())] = std::strtod(line.c_str() + blank, nullptr);
  }
  return sheet;
}

TypedSheet read_typed(const std::string& name) {
  const std::string text = read_file(source_path("tests/support/metric_sheets/" + name + ".txt"));
  RIVULET_CHECK(!text.empty(), "a typed sheet");
  TypedSheet typed;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    while (line.ends_with(' ')) line.pop_back();
    if (line.empty()) continue;
    const std::size_t equals = line.rfind(" = ");
    const std::size_t between = line.rfind(" between ");
    const std::size_t end = line.rfind(" and ");
    if (between != std::string::npos && end != std::string::npos)
      typed.between.push_back(
          {line.substr(0, between),
           {std::strtod(&line[between + 9], nullptr), std::strtod(&line[end + 5], nullptr)}});
    else if (equals != std::string::npos)
      typed.values.emplace_back(line.substr(0, equals), std::strtod(&line[equals + 3], nullptr));
    else
      check_failed(__FILE__, __LINE__, "SERIES = VALUE", line);
  }
  return typed;
}

namespace {

/// A typed "A..B" matches a number between the two.
bool as_typed(const nlohmann::json& value, const nlohmann::json& typed) {
  // Times and rates in facts are floats.
  if (value.is_number_float() && typed.is_number_float()) {
    const auto wanted = typed.get<double>();
    return std::abs(value.get<double>() - wanted) <= 1e-7 * std::abs(wanted);
  }
  if (value.is_number() && typed.is_number()) return same(value.get<double>(), typed.get<double>());
  if (!value.is_number() || !typed.is_string()) return value == typed;
  const std::string text = typed.get<std::string>();
  const std::size_t dots = text.find("..");
  if (dots == std::string::npos) return false;
  const auto number = value.get<double>();
  return number >= std::strtod(text.c_str(), nullptr) && number <= std::strtod(&text[dots + 2], nullptr);
}

}  // namespace

std::vector<std::string> json_differences(const std::string& json, const std::string& typed) {
  const auto is = nlohmann::json::parse(json).flatten();
  const auto wanted = nlohmann::json::parse(typed).flatten();
  std::vector<std::string> out;
  for (const auto& [path, value] : is.items()) {
    if (!wanted.contains(path))
      out.push_back(path + " is " + value.dump() + ", not typed");
    else if (!as_typed(value, wanted[path]))
      out.push_back(path + " is " + value.dump() + ", typed " + wanted[path].dump());
  }
  for (const auto& [path, value] : wanted.items())
    if (!is.contains(path)) out.push_back(path + " is missing, typed " + value.dump());
  return out;
}

std::vector<std::string> cells_of(const std::string& html) {
  static const std::regex cell(R"re(<(h1|h2|p|dd|th|td|li)( [^>]*)?>(.*?)</\1>)re");
  static const std::regex id(R"re( id="([^"]*)")re");
  static const std::regex mark_up("<[^>]*>");
  const std::size_t begin = html.find("<body");
  std::vector<std::string> out;
  for (std::sregex_iterator
           at(html.begin() + static_cast<std::ptrdiff_t>(std::min(begin, html.size())), html.end(), cell),
       end;
       at != end; ++at) {
    std::smatch named;
    const std::string attributes = (*at)[2];
    std::string line = (*at)[1];
    if (std::regex_search(attributes, named, id)) line += "#" + named[1].str();
    const std::string text = std::regex_replace((*at)[3].str(), mark_up, "");
    out.push_back(text.empty() ? line : line + " " + text);
  }
  return out;
}

std::vector<std::string> differences(const MetricSheet& sheet, const TypedSheet& typed) {
  std::vector<std::string> out;
  std::set<std::string> known;
  const auto value_of = [&](const std::string& series, const std::string& wanted) {
    known.insert(series);
    const auto at = sheet.find(series);
    if (at == sheet.end()) out.push_back(series + " is missing, typed " + wanted);
    return at;
  };
  for (const auto& [series, value] : typed.values) {
    const auto at = value_of(series, fmt::format("{}", value));
    if (at != sheet.end() && !same(at->second, value))
      out.push_back(fmt::format("{} is {}, typed {}", series, at->second, value));
  }
  for (const auto& [series, range] : typed.between) {
    const auto at = value_of(series, fmt::format("{} to {}", range.first, range.second));
    if (at != sheet.end() && !(at->second >= range.first && at->second <= range.second))
      out.push_back(fmt::format("{} is {}, typed {} to {}", series, at->second, range.first, range.second));
  }
  for (const auto& [series, value] : sheet)
    if (!known.contains(series)) out.push_back(fmt::format("{} is {}, not typed", series, value));
  return out;
}

std::set<std::string> names_in(const TypedSheet& typed) {
  std::set<std::string> names;
  for (const auto& entry : typed.values) names.insert(metric_of(entry.first));
  for (const auto& entry : typed.between) names.insert(metric_of(entry.first));
  return names;
}

}  // namespace rivulet::testing
