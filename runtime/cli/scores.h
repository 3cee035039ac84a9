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

/// How good predictions are, from what a model gave for rows whose answer is known. Pure; one thread.
namespace rivulet::runtime::cli {

/// Of a classification: who was taken for whom.
class ClassScores {
 public:
  /// One name for each class.
  explicit ClassScores(std::vector<std::string> names) : names_(std::move(names)), classes_(names_.size()) {}
  /// `outputs` [rows, classes], of which the greatest is the model's answer; `targets` [rows], class
  /// numbers.
  void add(std::span<const float> outputs, std::span<const float> targets);

  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  [[nodiscard]] double accuracy() const;
  [[nodiscard]] std::size_t classes() const noexcept { return classes_.size(); }
  [[nodiscard]] const std::string& name(std::size_t c) const { return names_.at(c); }
  [[nodiscard]] const ClassCounts& of(std::size_t c) const { return classes_.at(c); }
  /// Rows of class `actual` that the model takes for `predicted`.
  [[nodiscard]] std::uint64_t confused(std::size_t actual, std::size_t predicted) const;
  /// The class of most rows, the first of several: always answering it is right in of(majority()).rows.
  [[nodiscard]] std::size_t majority() const;

 private:
  std::vector<std::string> names_;
  std::vector<ClassCounts> classes_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> confusion_;  ///< only what occurs
  std::uint64_t rows_ = 0;
};

/// Of a regression: how far off, beside always answering the mean.
class RegressionScores {
 public:
  /// One number a row each.
  void add(std::span<const float> outputs, std::span<const float> targets);
  [[nodiscard]] double mean_absolute_error() const;
  /// 1 - squares off / squares from the mean: 1 is right, 0 no better than the mean. nullopt: all answers are
  /// equal.
  [[nodiscard]] std::optional<double> r2() const;
  [[nodiscard]] double mean() const;
  [[nodiscard]] double mean_absolute_error_of_mean() const;

 private:
  std::vector<double> targets_;
  double absolute_ = 0;
  double squares_ = 0;
};

/// Lines for a person below the first of `evaluate`.
std::string describe(const ClassScores& scores);
std::string describe(const RegressionScores& scores);

}  // namespace rivulet::runtime::cli
