#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace rivulet::runtime {

/// Rows of one class, and what the model took rows for.
struct ClassCounts {
  std::uint64_t rows = 0;       ///< that are of it
  std::uint64_t predicted = 0;  ///< that the model takes for it
  std::uint64_t right = 0;      ///< both
  /// right / rows; none: no row is of it.
  [[nodiscard]] std::optional<double> recall() const;
  /// right / predicted; none: it is never predicted.
  [[nodiscard]] std::optional<double> precision() const;
  bool operator==(const ClassCounts&) const = default;
};

/// How good the model is on the last rows of this device, each measured before it is trained: about
/// evaluate.prequential.window of them. Plain values.
struct OwnScores {
  static constexpr std::size_t classes_shown = 64;  ///< each is two series of Prometheus's

  std::uint64_t rows = 0;                                  ///< that it is of
  double loss = std::numeric_limits<double>::quiet_NaN();  ///< mean; infinite: it is not finite
  std::optional<double> accuracy;                          ///< of a classification
  /// Of a classification, whose trainer tells its answers: the first classes_shown, by number.
  std::vector<ClassCounts> classes;
  std::vector<std::string> names;  ///< of them
  /// Who always answers with the class of most rows is right so often. None: nobody counted.
  std::optional<double> largest_share;
  std::string largest_class;
  /// Of a regression, over all its outputs, in the targets' unit.
  std::optional<double> mean_absolute_error;
  /// 1 - squared errors / squares from the mean; none: all targets are equal.
  std::optional<double> r2;
};

/// One line; of the classes only those that occurred, or were answered.
std::string to_json(const OwnScores& scores);
/// Of what to_json wrote; otherwise an exception of the JSON library's, which is for its .cpp files alone.
OwnScores own_scores_from(const std::string& json);
/// Of the rows of two devices of a group. R2 is not known then, nor a largest class that differs and may not
/// be listed.
OwnScores together(const OwnScores& a, const OwnScores& b);

}  // namespace rivulet::runtime
