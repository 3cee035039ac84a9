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

/// What rows of a topic are like: ranges of their features, how often each label comes, why some are dropped.
/// One thread.
class RowSurvey {
 public:
  RowSurvey(const Config& config, const stream::Decoder& decoder);
  /// A row as the decoder gave it, and its label() then.
  void row(std::span<const float> features, std::span<const float> targets, std::string_view label);
  /// One that it dropped, with label() and detail().
  void drop(DropReason reason, std::string_view label, std::string_view detail);
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }
  /// Rows of another kind than is meant: neither among rows() nor dropped().
  [[nodiscard]] std::uint64_t filtered() const noexcept { return filtered_; }
  /// What the decoder's watch over narrowing has found: sentences, and the shifts that save what would be
  /// lost, one for each feature; both empty: nothing would.
  void take_narrowing(const stream::Decoder& decoder);
  [[nodiscard]] const std::vector<std::string>& narrowing() const noexcept { return narrowing_; }
  [[nodiscard]] const std::vector<double>& shifts() const noexcept { return shifts_; }
  [[nodiscard]] const FeatureRanges& ranges() const noexcept { return ranges_; }
  [[nodiscard]] const LabelCounts& labels() const noexcept { return labels_; }
  /// Lines for a person: features, labels (or the target of a regression), drops by reason.
  [[nodiscard]] std::string describe(const Config& config) const;
  /// "3 wrong_type (not a number: temp)" of the most frequent reason; empty: none was dropped.
  [[nodiscard]] std::string worst_drop() const;

 private:
  struct Drop {
    std::uint64_t rows = 0;
    std::string first;  ///< detail of the first
  };
  [[nodiscard]] std::string describe_drops() const;

  bool classification_;
  FeatureRanges ranges_;
  FeatureRanges target_;  ///< of a regression: the numbers to predict
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
