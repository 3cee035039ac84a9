#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/config/config.h"

namespace rivulet::runtime::cli {

/// What the features of the rows that were shown are like, and which scale and shift would bring them near 0
/// and 1. One thread.
class FeatureRanges {
 public:
  explicit FeatureRanges(std::size_t columns);
  void add(std::span<const float> features);
  /// Lines for a person: least, mean, deviation, greatest of each column (of all together, if there are many
  /// or the format scales them alike); below them, if they lie far off, the keys to write. Empty before two
  /// rows.
  [[nodiscard]] std::string describe(const Config::Decode& decode) const;

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
  static std::string line_of(const std::string& name, const Column& column);
  static std::string advice(const std::vector<Column>& columns, const Config::Decode& decode);

  std::vector<Column> columns_;
};

}  // namespace rivulet::runtime::cli
