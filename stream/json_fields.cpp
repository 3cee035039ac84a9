#include "stream/decoder/json_fields.h"

#include "stream/decoder/where.h"

namespace rivulet::stream {
namespace {

Error with_key(std::string_view key, const Error& error) {
  return {error.code, "decode.json." + std::string(key) + ": " + error.message};
}

/// Parses a path that must lead to a single value.
Result<JsonPath> single(std::string_view key, const std::string& text) {
  auto path = parse_json_path(text);
  if (!path) return with_key(key, path.error());
  for (const auto& step : path.value().steps)
    if (step.kind == JsonStep::Kind::slice)
      return Error{ErrorCode::invalid_config, "decode.json." + std::string(key) + ": \"" + text +
                                                  "\" must be a single " +
                                                  (key == "target" ? "number" : "value")};
  return path;
}

}  // namespace

std::size_t total_width(const std::vector<JsonPath>& paths) {
  std::size_t total = 0;
  for (const auto& path : paths) {
    const auto width = path.width();
    if (!width) return 0;
    total += *width;
  }
  return total;
}

std::size_t width_from(const JsonPath& path, std::size_t first) {
  std::size_t product = 1;
  for (std::size_t i = first; i < path.steps.size(); ++i)
    if (path.steps[i].kind == JsonStep::Kind::slice) product *= path.steps[i].last - path.steps[i].first;
  return product;
}

Result<JsonFields> json_fields_of(const DecodeConfig& config) {
  JsonFields fields;
  for (const auto& feature : config.features) {
    auto path = parse_json_path(feature);
    if (!path) return with_key("features", path.error());
    fields.features.push_back(std::move(path).value());
  }
  if (fields.features.empty())
    return Error{ErrorCode::invalid_config, "decode.json.features is empty: list the fields to learn from"};
  if (!config.target.empty()) {
    auto target = single("target", config.target);
    if (!target) return target.error();
    fields.target = std::move(target).value();
  }
  if (config.where.empty()) return fields;
  auto where = parse_where(config.where);
  if (!where) return with_key("where", where.error());
  auto kind = single("where", where.value().field);
  if (!kind) return kind.error();
  fields.kind = std::move(kind).value();
  fields.kind_wanted = where.value().value;
  return fields;
}

}  // namespace rivulet::stream
