#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace rivulet::runtime::cli {

/// Ranges of the features in sampled rows, and the scale and shift that bring them near mean 0 and deviation
/// 1. One thread.
class FeatureRanges {
 public:
  /// One column per name.
  explicit FeatureRanges(std::vector<std::string> names);
  /// Adds one row. NaN stands for a missing value.
  void add(std::span<const float> features);
  /// Renders minimum, mean, deviation and maximum per column; one line for all if there are many or the
  /// format scales them alike. If features are badly scaled, adds the keys that correct it. Empty if there
  /// are fewer than two rows.
  [[nodiscard]] std::string describe(const Config::Decode& decode) const;
  /// The same table for a regression target, without advice: targets are not scaled.
  [[nodiscard]] std::string describe_target() const;
  /// Scale and shift for mean 0 and standard deviation 1: one value for all features, or one per feature.
  struct Advice {
    std::vector<double> scale;
    std::vector<double> shift;
  };
  /// Returns nullopt if the features are well scaled, or if there were fewer than two rows.
  [[nodiscard]] std::optional<Advice> advice(const Config::Decode& decode) const;

 private:
  /// Statistics of one column by Welford's method, which avoids cancellation in sums of squares.
  struct Column {
    void add(double value);
    void add(const Column& other);
    [[nodiscard]] double deviation() const;
    [[nodiscard]] bool far_off() const;
    std::uint64_t count = 0;
    double mean = 0;
    double squares = 0;  ///< sum of squared distances from the mean
    double least = 0;
    double greatest = 0;
  };
  [[nodiscard]] std::vector<Column> grouped(const Config::Decode& decode) const;
  static Advice advice_of(const std::vector<Column>& columns, const Config::Decode& decode);
  [[nodiscard]] std::string table(const char* heading, const char* what,
                                  const std::vector<std::string>& names,
                                  const std::vector<Column>& columns) const;

  std::vector<std::string> names_;
  std::vector<Column> columns_;
  std::uint64_t rows_ = 0;
};

/// Returns one value as a TOML number, several as a TOML list.
std::string toml_of(const std::vector<double>& values);

}  // namespace rivulet::runtime::cli
