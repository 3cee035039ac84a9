#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/status/own_scores.h"

/// Prediction quality on labelled rows. Pure; one thread.
namespace rivulet::runtime::cli {

/// Scores of a classification, with its confusion matrix.
class ClassScores {
 public:
  /// One name per class.
  explicit ClassScores(std::vector<std::string> names) : names_(std::move(names)), classes_(names_.size()) {}
  /// `outputs` [rows, classes]: the largest element is the prediction. `targets` [rows]: class numbers.
  void add(std::span<const float> outputs, std::span<const float> targets);

  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  [[nodiscard]] double accuracy() const;
  [[nodiscard]] std::size_t classes() const noexcept { return classes_.size(); }
  [[nodiscard]] const std::string& name(std::size_t c) const { return names_.at(c); }
  [[nodiscard]] const ClassCounts& of(std::size_t c) const { return classes_.at(c); }
  /// Rows of class `actual` predicted as `predicted`.
  [[nodiscard]] std::uint64_t confused(std::size_t actual, std::size_t predicted) const;
  /// Returns the class with the most rows; on a tie, the first. Its share of the rows is the accuracy of
  /// always predicting it.
  [[nodiscard]] std::size_t majority() const;

 private:
  std::vector<std::string> names_;
  std::vector<ClassCounts> classes_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> confusion_;  ///< nonzero entries only
  std::uint64_t rows_ = 0;
};

/// Scores of a regression, next to a baseline that always predicts the mean.
class RegressionScores {
 public:
  /// Adds rows: one element per row in `outputs` and in `targets`.
  void add(std::span<const float> outputs, std::span<const float> targets);
  [[nodiscard]] double mean_absolute_error() const;
  /// 1 - squared error / squared deviation from the mean: 1 is perfect, 0 equals the mean. nullopt if all
  /// targets are equal.
  [[nodiscard]] std::optional<double> r2() const;
  [[nodiscard]] double mean() const;
  [[nodiscard]] double mean_absolute_error_of_mean() const;

 private:
  std::vector<double> targets_;
  double absolute_ = 0;
  double squares_ = 0;
};

/// Return the lines that `evaluate` prints below its first one.
std::string describe(const ClassScores& scores);
std::string describe(const RegressionScores& scores);

}  // namespace rivulet::runtime::cli
