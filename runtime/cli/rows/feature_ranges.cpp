#include "runtime/cli/rows/feature_ranges.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/cli/text.h"

namespace rivulet::runtime::cli {
namespace {

constexpr std::size_t most_lines = 24;
constexpr std::size_t most_letters = 40;
// Beyond this, the first layer diverges or learns too slowly at the default learning rate.
constexpr double far = 5;
constexpr double narrow = 0.05;

double of_column(const std::vector<double>& values, std::size_t column) {
  return values.size() == 1 ? values.front() : values.at(column);
}

double rounded(double value, int digits) {
  if (value == 0) return 0;
  const double unit = std::pow(10, digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))));
  return std::round(value * unit) / unit;
}

std::string missing_share(std::uint64_t missing, std::uint64_t rows) {
  return missing == 0 ? ""
                      : fmt::format("   missing in {:.3g} %",
                                    100.0 * static_cast<double>(missing) / static_cast<double>(rows));
}

}  // namespace

std::string toml_of(const std::vector<double>& values) {
  if (values.size() == 1) return fmt::format("{:.12g}", values.front());
  return fmt::format("[{:.12g}]", fmt::join(values, ", "));
}

FeatureRanges::FeatureRanges(std::vector<std::string> names)
    : names_(std::move(names)), columns_(names_.size()) {}

void FeatureRanges::Column::add(double value) {
  ++count;
  const double from_old = value - mean;
  mean += from_old / static_cast<double>(count);
  squares += from_old * (value - mean);
  least = count == 1 ? value : std::min(least, value);
  greatest = count == 1 ? value : std::max(greatest, value);
}

void FeatureRanges::Column::add(const Column& other) {
  if (count == 0 || other.count == 0) {
    if (count == 0) *this = other;
    return;
  }
  const auto mine = static_cast<double>(count);
  const auto its = static_cast<double>(other.count);
  const double apart = other.mean - mean;
  mean += apart * its / (mine + its);
  squares += other.squares + apart * apart * mine * its / (mine + its);
  count += other.count;
  least = std::min(least, other.least);
  greatest = std::max(greatest, other.greatest);
}

double FeatureRanges::Column::deviation() const {
  return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
}

bool FeatureRanges::Column::far_off() const {
  const double spread = deviation();
  return std::abs(mean) > far || spread > far || (spread > 0 && spread < narrow);
}

void FeatureRanges::add(std::span<const float> features) {
  ++rows_;
  for (std::size_t i = 0; i < columns_.size(); ++i)
    if (!std::isnan(features[i])) columns_[i].add(static_cast<double>(features[i]));
}

std::vector<FeatureRanges::Column> FeatureRanges::grouped(const Config::Decode& decode) const {
  const bool each = decode.scale.size() > 1 || decode.shift.size() > 1;
  if (each || (decode.format != "raw" && columns_.size() <= most_lines)) return columns_;
  Column all;
  for (const auto& column : columns_) all.add(column);
  return {all};
}

std::string FeatureRanges::table(const char* heading, const char* what, const std::vector<std::string>& names,
                                 const std::vector<Column>& columns) const {
  std::size_t width = 9;
  for (const auto& name : names) width = std::max(width, std::min(name.size() + 1, most_letters));
  auto text = fmt::format("{}, {} rows:\n  {:<{}}{:>11}{:>11}{:>11}{:>11}\n", heading, rows_, what, width,
                          "min", "mean", "deviation", "max");
  const std::uint64_t each = rows_ * columns_.size() / columns.size();
  for (std::size_t i = 0; i < columns.size(); ++i)
    text += fmt::format("  {:<{}}{:>11.4g}{:>11.4g}{:>11.4g}{:>11.4g}{}\n",
                        clipped(names[i], static_cast<int>(most_letters)), width, columns[i].least,
                        columns[i].mean, columns[i].deviation(), columns[i].greatest,
                        missing_share(each - columns[i].count, each));
  return text;
}

std::string FeatureRanges::describe(const Config::Decode& decode) const {
  if (columns_.empty() || rows_ < 2) return {};
  const auto columns = grouped(decode);
  const bool alike = columns.size() == 1 && columns_.size() > 1;
  auto text =
      table(decode.normalize
                ? "values in the records; the model receives them normalized (mean 0, standard deviation 1)"
                : "input of the model",
            "feature", alike ? std::vector<std::string>{"all"} : names_, columns);
  const auto better = advice(decode);
  if (!better) return text;
  return text +
         fmt::format(
             "training is slow or diverges with features this far from mean 0 and standard deviation 1; "
             "to normalize them (larger --rows: more precise), set:\n  decode.{0}.scale = {1}\n  "
             "decode.{0}.shift = {2}\n",
             decode.format, toml_of(better->scale), toml_of(better->shift));
}

std::string FeatureRanges::describe_target() const {
  if (rows_ < 2) return {};
  return table("target values", "target", names_, columns_);
}

std::optional<FeatureRanges::Advice> FeatureRanges::advice(const Config::Decode& decode) const {
  if (decode.normalize || columns_.empty() || rows_ < 2) return std::nullopt;
  const auto columns = grouped(decode);
  const bool well = std::none_of(columns.begin(), columns.end(), [](const auto& c) { return c.far_off(); });
  return well ? std::nullopt : std::optional(advice_of(columns, decode));
}

FeatureRanges::Advice FeatureRanges::advice_of(const std::vector<Column>& columns,
                                               const Config::Decode& decode) {
  Advice out;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const double spread = columns[i].deviation();
    const double by = spread > 0 ? spread : 1;
    out.scale.push_back(rounded(of_column(decode.scale, i) / by, 3));
    // x is the unscaled value, (y - old shift) / old scale; the new shift brings its mean to 0.
    const double had = of_column(decode.scale, i);
    const double x = had == 0 ? 0 : (columns[i].mean - of_column(decode.shift, i)) / had;
    out.shift.push_back(std::round(-x * out.scale.back() * 100) / 100);
  }
  return out;
}

}  // namespace rivulet::runtime::cli
