#include "runtime/cli/scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "core/printable.h"
#include "runtime/cli/text.h"

namespace rivulet::runtime::cli {
namespace {

constexpr std::size_t most_lines = 40;
constexpr std::size_t most_columns = 12;
constexpr int most_letters = 24;

std::string shown(const std::string& name) {
  return clipped(printable(name), most_letters);
}

/// Classes that occur as label or prediction: the ones with the most rows, ordered by number.
std::vector<std::size_t> occurring(const ClassScores& scores) {
  std::vector<std::size_t> out;
  for (std::size_t c = 0; c < scores.classes(); ++c)
    if (scores.of(c).rows + scores.of(c).predicted > 0) out.push_back(c);
  std::stable_sort(out.begin(), out.end(),
                   [&](std::size_t a, std::size_t b) { return scores.of(a).rows > scores.of(b).rows; });
  if (out.size() > most_lines) out.resize(most_lines);
  std::sort(out.begin(), out.end());
  return out;
}

std::size_t width_of(const ClassScores& scores, const std::vector<std::size_t>& classes) {
  std::size_t width = 6;
  for (const std::size_t c : classes) width = std::max(width, shown(scores.name(c)).size());
  return width;
}

std::string confusion(const ClassScores& scores, const std::vector<std::size_t>& classes) {
  const std::size_t width = width_of(scores, classes);
  auto text = fmt::format("confusion matrix: rows are labels, columns are predictions\n  {:<{}}", "", width);
  for (const std::size_t predicted : classes)
    text += fmt::format("  {:>{}}", shown(scores.name(predicted)), width);
  text += '\n';
  for (const std::size_t actual : classes) {
    text += fmt::format("  {:<{}}", shown(scores.name(actual)), width);
    for (const std::size_t predicted : classes)
      text += fmt::format("  {:>{}}", scores.confused(actual, predicted), width);
    text += '\n';
  }
  return text;
}

}  // namespace

void ClassScores::add(std::span<const float> outputs, std::span<const float> targets) {
  const std::size_t n = classes_.size();
  RIVULET_CHECK(outputs.size() == targets.size() * n, "outputs have the wrong shape");
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const auto of_row = outputs.subspan(row * n, n);
    const auto said =
        static_cast<std::size_t>(std::max_element(of_row.begin(), of_row.end()) - of_row.begin());
    const auto actual = static_cast<std::size_t>(targets[row]);
    ++classes_.at(actual).rows;
    ++classes_.at(said).predicted;
    if (said == actual) ++classes_[actual].right;
    ++confusion_[{actual, said}];
    ++rows_;
  }
}

double ClassScores::accuracy() const {
  const auto right = std::accumulate(classes_.begin(), classes_.end(), std::uint64_t{0},
                                     [](std::uint64_t sum, const ClassCounts& c) { return sum + c.right; });
  return rows_ == 0 ? 0 : static_cast<double>(right) / static_cast<double>(rows_);
}

std::uint64_t ClassScores::confused(std::size_t actual, std::size_t predicted) const {
  const auto at = confusion_.find({actual, predicted});
  return at == confusion_.end() ? 0 : at->second;
}

std::size_t ClassScores::majority() const {
  const auto most = std::ranges::max_element(classes_, {}, &ClassCounts::rows);
  return static_cast<std::size_t>(most - classes_.begin());
}

void RegressionScores::add(std::span<const float> outputs, std::span<const float> targets) {
  RIVULET_CHECK(outputs.size() == targets.size(), "outputs have the wrong shape");
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const double off = static_cast<double>(outputs[i]) - static_cast<double>(targets[i]);
    absolute_ += std::abs(off);
    squares_ += off * off;
    targets_.push_back(targets[i]);
  }
}

double RegressionScores::mean_absolute_error() const {
  return absolute_ / static_cast<double>(targets_.size());
}

double RegressionScores::mean() const {
  return std::accumulate(targets_.begin(), targets_.end(), 0.0) / static_cast<double>(targets_.size());
}

double RegressionScores::mean_absolute_error_of_mean() const {
  double sum = 0;
  const double middle = mean();
  for (const double target : targets_) sum += std::abs(target - middle);
  return sum / static_cast<double>(targets_.size());
}

std::optional<double> RegressionScores::r2() const {
  double from_mean = 0;
  const double middle = mean();
  for (const double target : targets_) from_mean += (target - middle) * (target - middle);
  if (from_mean == 0) return std::nullopt;
  return 1 - squares_ / from_mean;
}

std::string describe(const ClassScores& scores) {
  const auto majority = scores.majority();
  auto text =
      fmt::format("baseline (majority class): {}, {:.2f} %\n", shown(scores.name(majority)),
                  100 * static_cast<double>(scores.of(majority).rows) / static_cast<double>(scores.rows()));
  const auto classes = occurring(scores);
  const std::size_t width = width_of(scores, classes);
  text += fmt::format("  {:<{}}{:>10}{:>11}{:>11}{:>9}\n", "class", width, "rows", "predicted", "precision",
                      "recall");
  for (const std::size_t c : classes) {
    const auto& one = scores.of(c);
    text += fmt::format("  {:<{}}{:>10}{:>11}{:>11}{:>9}\n", shown(scores.name(c)), width, one.rows,
                        one.predicted, share_or_dash(one.precision()), share_or_dash(one.recall()));
  }
  if (classes.size() == most_lines) text += "  --json lists the smaller classes too\n";
  return classes.size() > most_columns ? text : text + confusion(scores, classes);
}

std::string describe(const RegressionScores& scores) {
  const auto r2 = scores.r2();
  return fmt::format(
      "mean absolute error {:.4g}, R2 {}\nbaseline (the mean, {:.4g}): mean absolute error {:.4g}, R2 0\n",
      scores.mean_absolute_error(), r2 ? fmt::format("{:.4f}", *r2) : "unknown: all targets are equal",
      scores.mean(), scores.mean_absolute_error_of_mean());
}

}  // namespace rivulet::runtime::cli
