#include "runtime/cli/rows/label_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/printable.h"
#include "runtime/cli/text.h"
#include "runtime/node/node_config.h"

namespace rivulet::runtime::cli {
namespace {

constexpr std::size_t most_remembered = 10'000;
constexpr std::size_t most_labels = 20;
constexpr std::size_t most_in_a_list = 1000;

double percent(std::uint64_t part, std::uint64_t whole) {
  return 100 * static_cast<double>(part) / static_cast<double>(whole);
}

bool whole_number(const std::string& label) {
  const auto number = label_number(label);
  return number && *number >= 0 && *number == std::floor(*number);
}

/// Numbers by value, then text alphabetically.
bool before(const std::string& a, const std::string& b) {
  const auto x = label_number(a);
  const auto y = label_number(b);
  if (x.has_value() != y.has_value()) return x.has_value();
  return x && *x != *y ? *x < *y : a < b;
}

bool contains(const std::vector<std::string>& list, const std::string& label) {
  return std::find(list.begin(), list.end(), label) != list.end();
}

}  // namespace

std::optional<double> label_number(const std::string& label) {
  double x = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), x);
  const bool number = error == std::errc() && end == label.data() + label.size() && std::isfinite(x);
  return number ? std::optional(x) : std::nullopt;
}

std::string toml_list(const std::vector<std::string>& labels) {
  std::string text;
  for (const auto& label : labels) text += (text.empty() ? "" : ", ") + toml_string(label);
  return "[" + text + "]";
}

void LabelCounts::add(std::string_view label, bool text) {
  ++rows_;
  texts_ += text ? 1 : 0;
  const auto at = counts_.find(label);
  if (at != counts_.end())
    ++at->second;
  else if (counts_.size() < most_remembered)
    counts_.emplace(label, 1);
  else
    ++others_;
}

std::vector<std::string> LabelCounts::in_order() const {
  std::vector<std::string> out;
  out.reserve(counts_.size());
  for (const auto& [label, rows] : counts_) out.push_back(label);
  std::sort(out.begin(), out.end(), before);
  return out;
}

std::vector<LabelCounts::Share> LabelCounts::shares() const {
  std::vector<Share> out;
  for (const auto& label : in_order()) out.push_back({label, counts_.at(label)});
  std::stable_sort(out.begin(), out.end(), [](const Share& a, const Share& b) { return a.rows > b.rows; });
  return out;
}

std::string LabelCounts::largest() const {
  if (rows_ == 0) return {};
  const auto first = shares().front();
  return fmt::format("baseline (majority class): {}, {:.1f} % of {} labels", printable(first.label),
                     percent(first.rows, rows_), rows_);
}

std::string LabelCounts::describe(const Config& config) const {
  if (rows_ == 0) return {};
  const auto all = shares();
  std::size_t width = 9;
  for (std::size_t i = 0; i < std::min(all.size(), most_labels); ++i)
    width = std::max(width, std::min<std::size_t>(all[i].label.size(), 40));
  auto text = fmt::format("labels:\n  {:<{}}{:>10}{:>9}\n", "label", width, "rows", "share");
  std::uint64_t listed = 0;
  for (std::size_t i = 0; i < std::min(all.size(), most_labels); ++i) {
    listed += all[i].rows;
    text += fmt::format("  {:<{}}{:>10}{:>7.1f} %\n", clipped(printable(all[i].label), 40), width,
                        all[i].rows, percent(all[i].rows, rows_));
  }
  if (listed < rows_) text += fmt::format("  {:<{}}{:>10}\n", "others", width, rows_ - listed);
  return text + largest() + "\n" + advice(config);
}

std::string LabelCounts::advice(const Config& config) const {
  const auto labels = in_order();
  const auto& decode = config.decode;
  if (!decode.classes.empty()) return list_advice(config);
  const bool numbers = texts_ == 0 && std::all_of(labels.begin(), labels.end(), whole_number);
  if (numbers && *label_number(labels.back()) < config.model.classes) return {};
  const bool measured =
      texts_ == 0 && !numbers &&
      std::all_of(labels.begin(), labels.end(), [](const auto& l) { return label_number(l).has_value(); });
  if (measured)
    return "the labels are numbers, but not class numbers (0, 1, ...); for regression, set\n  train.loss = "
           "\"mse\"\n";
  const auto highest = numbers ? *label_number(labels.back()) : 0;
  if (numbers && highest + 1 == static_cast<double>(labels.size()))
    return fmt::format("for labels from 0 to {0:g}, set\n  model.classes = {1:g}\n", highest, highest + 1);
  if (others_ > 0 || labels.size() > most_in_a_list)
    return fmt::format("{} distinct labels: too many for a list of classes\n", labels.size());
  if (labels.size() < 2 || (decode.format != "json" && decode.format != "csv")) return {};
  return fmt::format(
      "to use these labels as classes 0, 1, ..., set (a larger --rows may find more):\n"
      "  decode.{}.classes = {}\n",
      decode.format, printable(toml_list(labels)));
}

/// Keeps the configured list first and unchanged: classes keep their numbers.
std::string LabelCounts::list_advice(const Config& config) const {
  auto list = config.decode.classes;
  std::uint64_t unlisted = 0;
  for (const auto& label : in_order()) {
    if (contains(config.decode.classes, label)) continue;
    unlisted += counts_.at(label);
    list.push_back(label);
  }
  if (unlisted == 0 || list.size() > most_in_a_list) return {};
  return fmt::format(
      "{} rows have labels that are not in the list; to add the labels, set\n  decode.{}.classes = {}\n",
      unlisted, config.decode.format, printable(toml_list(list)));
}

}  // namespace rivulet::runtime::cli
