#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/record.h"
#include "runtime/cli/rows/feature_ranges.h"
#include "runtime/cli/rows/label_counts.h"
#include "runtime/config/config.h"
#include "stream/decoder.h"

namespace rivulet::runtime::cli {

/// Statistics of a topic's rows: feature ranges, label counts, drop reasons. One thread.
class RowSurvey {
 public:
  RowSurvey(const Config& config, const stream::Decoder& decoder);
  /// Adds a decoded row with its label().
  void row(std::span<const float> features, std::span<const float> targets, std::string_view label);
  /// Adds a dropped row with its label() and detail().
  void drop(DropReason reason, std::string_view label, std::string_view detail);
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
  /// Returns the number of rows excluded by 'where'; they count in neither rows() nor dropped().
  [[nodiscard]] std::uint64_t filtered() const noexcept { return filtered_; }
  /// Copies the decoder's findings about precision lost by narrowing: sentences, and one shift per feature
  /// that avoids the loss. Both are empty if nothing is lost.
  void take_narrowing(const stream::Decoder& decoder);
  [[nodiscard]] const std::vector<std::string>& narrowing() const noexcept { return narrowing_; }
  [[nodiscard]] const std::vector<double>& shifts() const noexcept { return shifts_; }
  [[nodiscard]] const FeatureRanges& ranges() const noexcept { return ranges_; }
  [[nodiscard]] const LabelCounts& labels() const noexcept { return labels_; }
  /// Renders features, labels (or the target of a regression) and drops by reason.
  [[nodiscard]] std::string describe(const Config& config) const;
  /// "3 wrong_type (not a number: temp)" for the most frequent reason; empty without drops.
  [[nodiscard]] std::string worst_drop() const;

 private:
  struct Drop {
    std::uint64_t rows = 0;
    std::string first;  ///< detail of the first
  };
  [[nodiscard]] std::string describe_drops() const;

  bool classification_;
  FeatureRanges ranges_;
  FeatureRanges target_;  ///< regression target
  LabelCounts labels_;
  std::uint64_t rows_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t filtered_ = 0;
  std::array<Drop, drop_reasons> drops_;
  std::vector<std::string> narrowing_;
  std::vector<double> shifts_;
};

/// Decodes all rows of a record into the survey.
void survey_record(stream::Decoder& decoder, const Record& record, RowSurvey& survey);

}  // namespace rivulet::runtime::cli
