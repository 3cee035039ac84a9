#include "runtime/cli/rows/peek_print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "core/printable.h"

namespace rivulet::runtime::cli {
namespace {

constexpr std::size_t first_values = 8;
constexpr std::size_t widest_image = 96;

/// True if the shape is an image that fits a terminal; returns the first channel's height and width.
bool is_picture(const RowShape& shape, std::size_t& height, std::size_t& width) {
  const auto n = shape.shape.size();
  if (n < 2) return false;
  height = static_cast<std::size_t>(shape.shape[n - 2]);
  width = static_cast<std::size_t>(shape.shape[n - 1]);
  return height >= 4 && width >= 4 && height <= widest_image && width <= widest_image;
}

std::string place(std::string_view topic, const RowPosition& position) {
  return fmt::format("{}[{}] offset {} row {}", topic, position.partition.partition, position.at.offset,
                     position.at.row);
}

/// The first values, with names if present.
std::string first_of(const PeekedRow& row) {
  std::string text;
  for (std::size_t i = 0; i < std::min(first_values, row.features.size()); ++i) {
    if (i > 0) text += ", ";
    if (i < row.names.size() && !row.names[i].empty()) text += row.names[i] + " ";
    text += std::isnan(row.features[i]) ? "missing" : fmt::format("{:.4g}", row.features[i]);
  }
  return text;
}

/// Omits missing values.
std::vector<float> values_of(std::span<const float> features) {
  std::vector<float> values;
  std::ranges::copy_if(features, std::back_inserter(values), [](float x) { return !std::isnan(x); });
  return values;
}

nlohmann::ordered_json place_json(std::string_view topic, const RowPosition& position) {
  return {{"topic", topic},
          {"partition", position.partition.partition},
          {"offset", position.at.offset},
          {"row", position.at.row}};
}

}  // namespace

std::string ascii_image(std::span<const float> values, std::size_t height, std::size_t width) {
  static constexpr std::string_view shades = " .:-=+*#%@";
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const float range = *high > *low ? *high - *low : 1.0F;
  std::string text;
  // A character is about twice as high as wide, so one text line covers two image lines.
  for (std::size_t y = 0; y + 1 < height + 1; y += 2) {
    std::string line;
    for (std::size_t x = 0; x < width; ++x) {
      const float upper = values[y * width + x];
      const float lower = y + 1 < height ? values[(y + 1) * width + x] : upper;
      const float share = ((upper + lower) / 2 - *low) / range;
      line += shades[std::min(shades.size() - 1,
                              static_cast<std::size_t>(share * static_cast<float>(shades.size())))];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += "    " + line + '\n';
  }
  return text;
}

std::string describe_row(const PeekedRow& row, const RowShape& shape, bool picture) {
  auto text = place(row.topic, row.position);
  if (!row.targets.empty()) text += fmt::format("  target {:g}", fmt::join(row.targets, ", "));
  if (!row.label.empty()) text += fmt::format(" = {}", printable(row.label));
  const auto values = values_of(row.features);
  text += fmt::format("\n  features [{}]", fmt::join(shape.shape, ", "));
  if (!values.empty()) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const double sum = std::accumulate(values.begin(), values.end(), 0.0);
    text +=
        fmt::format(" from {:g} to {:g}, mean {:.4g}", *low, *high, sum / static_cast<double>(values.size()));
  }
  text += fmt::format("\n  first {}{}\n", first_of(row), row.features.size() > first_values ? ", ..." : "");
  std::size_t height = 0;
  std::size_t width = 0;
  if (picture && is_picture(shape, height, width))
    text += ascii_image(row.features.first(height * width), height, width);
  return text;
}

std::string row_to_json(const PeekedRow& row, const RowShape& shape) {
  auto json = place_json(row.topic, row.position);
  json["timestamp_ms"] = row.timestamp_ms;
  json["shape"] = shape.shape;
  json["targets"] = std::vector<float>(row.targets.begin(), row.targets.end());
  if (!row.label.empty()) json["label"] = row.label;
  json["features"] = std::vector<float>(row.features.begin(), row.features.end());
  return json.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);  // labels may contain any bytes
}

std::string describe_drop(std::string_view topic, const RowPosition& position, DropReason reason,
                          std::string_view detail) {
  return fmt::format("{}  dropped: {}{}{}\n", place(topic, position), name_of(reason),
                     detail.empty() ? "" : ", ", printable(detail));
}

std::string drop_to_json(std::string_view topic, const RowPosition& position, DropReason reason,
                         std::string_view detail) {
  auto json = place_json(topic, position);
  json["dropped"] = name_of(reason);
  json["detail"] = detail;
  return json.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);  // detail may quote invalid bytes
}

}  // namespace rivulet::runtime::cli
