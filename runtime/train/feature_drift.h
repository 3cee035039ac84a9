#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rivulet::runtime {

/// Compares recent values of this device's features with earlier ones, to detect features that have shifted
/// or are stuck. Detects shifts only after 2500 rows. Clips values at eight standard deviations, so a few
/// outliers do not count as a shift. Memory: 150 bytes per feature. Cost: half a nanosecond per value
/// (bench_watching_cost).
class FeatureDrift {
 public:
  explicit FeatureDrift(std::size_t features);
  [[nodiscard]] std::size_t features() const noexcept { return known_.size(); }

  /// Adds the rows of one batch, `columns` apart. Each row begins with the features; missing ones are NaN.
  /// Evaluates every 64 rows; returns true if it did.
  bool add(const float* values, std::size_t rows, std::size_t columns);

  /// True if the feature has been measured.
  [[nodiscard]] bool begun(std::size_t feature) const noexcept { return known_[feature].rows > 0; }
  /// Returns the distance from the usual mean to the mean of the last 200 rows, in usual standard deviations;
  /// 0 before the first evaluation.
  [[nodiscard]] double distance(std::size_t feature) const noexcept { return known_[feature].distance; }
  /// True if a feature that used to vary has kept one value for 500 rows, and for four times as many rows as
  /// ever before. A rarely set flag must have been set twenty times first.
  [[nodiscard]] bool stuck(std::size_t feature) const noexcept;
  /// True from when distance() exceeds 3 until it falls to half of that.
  [[nodiscard]] bool moved(std::size_t feature) const noexcept { return known_[feature].moved; }
  struct Farthest {
    float value = 0;
    std::uint32_t beyond = 0;  ///< rows beyond eight usual standard deviations
  };
  /// Returns the value farthest from the usual mean, among values that are not added yet.
  [[nodiscard]] Farthest farthest(std::size_t feature, const float* values, std::size_t rows,
                                  std::size_t columns) const noexcept;
  /// "20 ± 0.02"
  [[nodiscard]] std::string usual(std::size_t feature) const;
  /// "35.1 now, 20 ± 0.02 before"
  [[nodiscard]] std::string describe(std::size_t feature) const;

 private:
  struct Spread {
    double mean = 0;
    double variance = 0;
    [[nodiscard]] double deviation() const noexcept;
  };
  struct Known {
    double rows = 0;
    Spread usual;           ///< spread of the last 10 000 rows, clipped
    Spread before;          ///< value of `usual` 500 to 1000 rows ago; the reference for recent rows
    Spread lately;          ///< value of `usual` up to 500 rows ago
    double until_next = 0;  ///< rows until before and lately are replaced
    Spread recent;          ///< spread of the last 200 rows, clipped
    double now = 0;         ///< mean of the last 200 rows, unclipped
    double distance = 0;    ///< distance at the last evaluation
    bool moved = false;
    [[nodiscard]] double measured_distance() const noexcept;
  };
  void judge();
  void begin_feature(std::size_t i);
  void judge_feature(std::size_t i);
  void bound(std::size_t i);

  std::vector<Known> known_;
  std::size_t waiting_ = 0;  ///< rows in the sums
  bool all_begun_ = false;
  std::vector<float> first_;   ///< first rows, until every feature has been measured
  std::vector<float> sorted_;  ///< scratch
  // One element per feature. Separate vectors, since a batch is processed row by row.
  std::vector<float> center_, reach_;                   ///< origin and limit of offsets
  std::vector<float> sum_, square_, as_they_came_;      ///< sums over offsets
  std::vector<std::uint32_t> missing_;                  ///< number of rows without the feature
  std::vector<float> last_;                             ///< last value; NaN before the first row
  std::vector<std::uint32_t> still_, longest_, turns_;  ///< current and longest run; changes
};

}  // namespace rivulet::runtime
