#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace rivulet::runtime {

/// Confusion counts of one class.
struct ClassCounts {
  std::uint64_t rows = 0;       ///< labelled as this class
  std::uint64_t predicted = 0;  ///< predicted as this class
  std::uint64_t right = 0;      ///< rows labelled and predicted as this class
  /// right / rows; none without rows of the class.
  [[nodiscard]] std::optional<double> recall() const;
  /// right / predicted; none if never predicted.
  [[nodiscard]] std::optional<double> precision() const;
  bool operator==(const ClassCounts&) const = default;
};

/// Scores of the model on the last rows of this device, each scored before the model trains on it: about
/// evaluate.prequential.window rows. Plain values.
struct OwnScores {
  static constexpr std::size_t classes_shown = 64;  ///< each makes two Prometheus series

  std::uint64_t rows = 0;                                  ///< scored rows
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< mean; infinite if not finite
  std::optional<double> accuracy;                          ///< classification only
  /// Classification with predictions from the trainer: the first classes_shown, by number.
  std::vector<ClassCounts> classes;
  std::vector<std::string> names;  ///< names of the classes
  /// Share of the most frequent class: the accuracy of always predicting it. None if not counted.
  std::optional<double> largest_share;
  std::string largest_class;
  /// Regression only: over all outputs, in the targets' unit.
  std::optional<double> mean_absolute_error;
  /// 1 - squared errors / squared deviations from the mean; none if all targets are equal.
  std::optional<double> r2;
};

/// One line; lists only the classes that occurred or were predicted.
std::string to_json(const OwnScores& scores);
/// Parses the output of to_json(). Throws the JSON library's exceptions, so use it in its .cpp files only.
OwnScores own_scores_from(const std::string& json);
/// Merges the scores of two devices. R2 becomes unknown, and so does the largest class if it differs and may
/// not be listed.
OwnScores together(const OwnScores& a, const OwnScores& b);

}  // namespace rivulet::runtime
