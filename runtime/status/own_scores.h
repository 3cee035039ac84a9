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
  /// Returns right / rows; nullopt if the class has no rows.
  [[nodiscard]] std::optional<double> recall() const;
  /// Returns right / predicted; nullopt if the class was never predicted.
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
  /// Counts of the first classes_shown classes, by number. Only for a classification whose trainer reports
  /// predictions.
  std::vector<ClassCounts> classes;
  std::vector<std::string> names;  ///< names of the classes
  /// Share of the most frequent class: the accuracy of always predicting it. nullopt if not counted.
  std::optional<double> largest_share;
  std::string largest_class;
  /// Regression only: mean over all outputs, in the targets' unit.
  std::optional<double> mean_absolute_error;
  /// 1 - squared errors / squared deviations from the mean; nullopt if all targets are equal.
  std::optional<double> r2;
};

/// Renders the scores on one line. Lists only classes that occurred or were predicted.
std::string to_json(const OwnScores& scores);
/// Parses the output of to_json(). Throws the JSON library's exceptions, so use it in its .cpp files only.
OwnScores own_scores_from(const std::string& json);
/// Merges the scores of two devices. R2 becomes unknown. The largest class becomes unknown, too, if it
/// differs and may be missing in a list.
OwnScores together(const OwnScores& a, const OwnScores& b);

}  // namespace rivulet::runtime
