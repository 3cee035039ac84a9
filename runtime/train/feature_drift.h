#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rivulet::runtime {

/// How the values of features of this device's stream are now, beside how they were: whether they have moved
/// away, or stand still. No movement is judged before 2500 rows. A few outliers are no movement: values count
/// within eight deviations. Memory: 150 bytes for a feature. Cost: half a nanosecond for a value
/// (bench_watching_cost).
class FeatureDrift {
 public:
  explicit FeatureDrift(std::size_t features);
  [[nodiscard]] std::size_t features() const noexcept { return known_.size(); }

  /// Rows of one batch, `columns` apart: in each the first values are the features; missing ones are NaN.
  /// They are judged once there are 64 rows of them: true, if that was so now.
  bool add(const float* values, std::size_t rows, std::size_t columns);

  /// Something is known of it.
  [[nodiscard]] bool begun(std::size_t feature) const noexcept { return known_[feature].rows > 0; }
  /// From the usual mean to that of the last 200 rows, in usual deviations; 0 before anything is judged.
  [[nodiscard]] double distance(std::size_t feature) const noexcept { return known_[feature].distance; }
  /// It has had one value for four times as long as ever before, though it varied; for 500 rows at least. Of
  /// a flag that is seldom up that says little until it was up twenty times.
  [[nodiscard]] bool stuck(std::size_t feature) const noexcept;
  /// distance() has risen above 3 and not come down to half of that since.
  [[nodiscard]] bool moved(std::size_t feature) const noexcept { return known_[feature].moved; }
  struct Farthest {
    float value = 0;
    std::uint32_t beyond = 0;  ///< rows beyond eight usual deviations
  };
  /// Of values that were not added yet: the one that lies farthest from the usual mean.
  [[nodiscard]] Farthest farthest(std::size_t feature, const float* values, std::size_t rows,
                                  std::size_t columns) const noexcept;
  /// "20 ± 0.02"
  [[nodiscard]] std::string usual(std::size_t feature) const;
  /// "35.1 now, before 20 ± 0.02"
  [[nodiscard]] std::string describe(std::size_t feature) const;

 private:
  struct Spread {
    double mean = 0;
    double variance = 0;
    [[nodiscard]] double deviation() const noexcept;
  };
  struct Known {
    double rows = 0;
    Spread usual;           ///< of the last 10 000 rows, clipped
    Spread before;          ///< same, 500 to 1000 rows ago: what recent rows are compared with
    Spread lately;          ///< ... up to 500 rows ago
    double until_next = 0;  ///< rows, until these are others
    Spread recent;          ///< of the last 200 rows, clipped
    double now = 0;         ///< mean of the last 200 rows, as they came
    double distance = 0;    ///< when it was judged last
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
  std::vector<float> first_;   ///< those rows, while a feature has not begun
  std::vector<float> sorted_;  // scratch
  // Of each feature, in vectors, for a batch goes over them row by row.
  std::vector<float> center_, reach_;                   ///< of offsets: from what, clipped at what
  std::vector<float> sum_, square_, as_they_came_;      ///< of offsets
  std::vector<std::uint32_t> missing_;                  ///< rows
  std::vector<float> last_;                             ///< value; NaN before there is one
  std::vector<std::uint32_t> still_, longest_, turns_;  ///< rows that had it; most rows that had one value
                                                        ///< before; times that it took another
};

}  // namespace rivulet::runtime
