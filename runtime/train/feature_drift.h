#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace rivulet::runtime {

/// How the values of one feature of this device's stream are now, beside how they were: whether they have
/// moved away, or stand still. Nothing is judged before 2500 rows. A few outliers are no movement: values
/// count within eight deviations. Memory: 100 bytes. Cost: a few additions for a value.
class FeatureDrift {
 public:
  /// Values of one batch, `stride` apart; missing ones are NaN.
  void add(const float* values, std::size_t rows, std::size_t stride);

  /// From the usual mean to that of the last 200 rows, in usual deviations; 0 before anything is judged.
  [[nodiscard]] double distance() const noexcept;
  /// It has had one value for four times as long as ever before, though it varied; for 500 rows at least. Of
  /// a flag that is seldom up that says little until it was up twenty times.
  [[nodiscard]] bool stuck() const noexcept;
  /// distance() has risen above 3 and not come down to half of that since.
  [[nodiscard]] bool moved() const noexcept { return moved_; }
  struct Farthest {
    float value = 0;
    std::uint32_t beyond = 0;  ///< so many lie beyond eight usual deviations
  };
  /// Of values that were not added yet: the one that lies farthest from the usual mean.
  [[nodiscard]] Farthest farthest(const float* values, std::size_t rows, std::size_t stride) const noexcept;
  /// "20 ± 0.02"
  [[nodiscard]] std::string usual() const;
  /// "35.1 now, before 20 ± 0.02"
  [[nodiscard]] std::string describe() const;

 private:
  static constexpr double usual_rows = 10'000;
  static constexpr double recent_rows = 200;
  static constexpr double rows_before = 500;
  static constexpr double rows_judged = 2500;  ///< a window of fewer may be a part of a slow wave
  static constexpr double clipped_at = 8;      ///< deviations
  static constexpr double far = 3;             ///< same
  static constexpr double much_longer = 4;     ///< than the longest time at one value
  static constexpr double enough_turns = 40;   ///< times that it took another value
  static constexpr double rounding = 1e-6;     ///< of the mean: no deviation is smaller

  struct Spread {
    double mean = 0;
    double variance = 0;
    [[nodiscard]] double deviation() const noexcept;
  };
  static void follow(Spread& known, double mean, double variance, double weight);
  void count_still(const float* values, std::size_t rows, std::size_t stride);

  double rows_ = 0;
  Spread usual_;                     ///< of the last 10 000 rows, clipped
  Spread before_;                    ///< same, 500 to 1000 rows ago: what recent rows are compared with
  Spread lately_;                    ///< ... up to 500 rows ago
  double until_next_ = rows_before;  ///< rows, until these are others
  Spread recent_;                    ///< of the last 200 rows, clipped
  double now_ = 0;                   ///< mean of the last 200 rows, as they came
  float last_ = 0;                   ///< value
  double still_ = 0;                 ///< rows that had it
  double longest_ = 0;               ///< so many had one value, before
  double turns_ = 0;                 ///< times that it took another value
  bool moved_ = false;
};

}  // namespace rivulet::runtime
