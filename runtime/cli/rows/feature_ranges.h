#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace rivulet::runtime::cli {

/// What the features of the rows that were shown are like, and which scale and shift would bring them near 0
/// and 1. One thread.
class FeatureRanges {
 public:
  /// A column for each name.
  explicit FeatureRanges(std::vector<std::string> names);
  /// A NaN is a value that the row does not have.
  void add(std::span<const float> features);
  /// Lines for a person: least, mean, deviation, greatest of each column (of all together, if there are many
  /// or the format scales them alike); below them, if they lie far off, the keys to write. Empty before two
  /// rows.
  [[nodiscard]] std::string describe(const Config::Decode& decode) const;
  /// The same of a number to predict: only the table, for nobody scales it.
  [[nodiscard]] std::string describe_target() const;
  /// The scale and shift that bring mean and deviation to 0 and 1, one each or one for all features.
  struct Advice {
    std::vector<double> scale;
    std::vector<double> shift;
  };
  /// nullopt: the features lie well, or there were not two rows.
  [[nodiscard]] std::optional<Advice> advice(const Config::Decode& decode) const;

 private:
  /// Of the values of one column, by Welford's way: no sum of squares to lose digits in.
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

/// One number as such, several as a list, as the file wants them.
std::string toml_of(const std::vector<double>& values);

}  // namespace rivulet::runtime::cli
