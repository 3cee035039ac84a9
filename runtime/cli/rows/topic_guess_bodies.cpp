#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "runtime/cli/rows/topic_guess.h"
#include "stream/text_body.h"

namespace rivulet::runtime::cli {
namespace {

constexpr double far_from_others = 3;  // multiples of their range
constexpr std::array usual_codes{-999.0,        -9999.0,      -99999.0, -99.0,    999.0,   9999.0,
                                 99999.0,       65535.0,      32767.0,  -32768.0, 65534.0, 2147483647.0,
                                 -2147483648.0, 4294967295.0, -1e30,    1e30,     -1e20,   1e20};

stream::TextBody body_of(const std::string& record, stream::TextKind kind) {
  return stream::text_body(std::as_bytes(std::span(record)), kind);
}

bool is_json_without_fields(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  return json.is_array() &&
         std::ranges::none_of(json, [](const auto& element) { return element.is_object(); });
}

bool is_code(double x) {
  return std::ranges::find(usual_codes, x) != usual_codes.end();
}

}  // namespace

std::vector<std::string> bodies_of(const std::vector<std::string>& records) {
  std::vector<std::string> bodies;
  for (const auto& record : records)
    bodies.push_back(record.substr(body_of(record, stream::TextKind::csv).begin));
  return bodies;
}

std::string no_rows(const std::vector<std::string>& records) {
  std::size_t arrays = 0;
  std::map<std::uint32_t, std::size_t> framed;  // floats may look like frames, but not with one schema id
  for (const auto& record : records) {
    const auto body = body_of(record, stream::TextKind::csv);
    arrays += is_json_without_fields(record.substr(body.begin)) ? 1 : 0;
    if (body.binary) ++framed[*body.schema];
  }
  for (const auto& [schema, count] : framed)
    if (count * 2 > records.size())
      return fmt::format("the topic's content {}: rows must be JSON, CSV or raw binary numbers",
                         stream::words_for_binary(schema));
  if (arrays * 2 > records.size())
    return "records are JSON arrays without objects: a row needs field names, as in {\"x\": [1, 2, 3], "
           "\"label\": "
           "0}";
  return {};
}

std::vector<double> codes_of(const GuessedField& field) {
  std::vector<double> codes;
  std::optional<double> least;
  std::optional<double> greatest;
  const auto shares = field.values.shares();
  for (const auto& share : shares) {
    const auto x = label_number(share.label);
    if (!x) return {};
    if (is_code(*x) && share.rows >= 2 && share.rows * 2 <= field.rows) {
      codes.push_back(*x);
      continue;
    }
    least = std::min(least.value_or(*x), *x);
    greatest = std::max(greatest.value_or(*x), *x);
  }
  if (!least) return {};
  const double range = std::max(*greatest - *least, std::abs(*greatest) / 100);
  std::erase_if(codes, [&](double code) {
    return std::max(*least - code, code - *greatest) < far_from_others * range;
  });
  std::ranges::sort(codes);
  return codes;
}

}  // namespace rivulet::runtime::cli
