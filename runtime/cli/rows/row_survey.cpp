#include "runtime/cli/rows/row_survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/printable.h"
#include "runtime/node/node_config.h"
#include "stream/narrowing.h"

namespace rivulet::runtime::cli {
namespace {

std::vector<std::string> feature_names(const stream::Decoder& decoder) {
  std::vector<std::string> names(decoder.shape().columns());
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = decoder.column_name(i);
  return names;
}

}  // namespace

RowSurvey::RowSurvey(const Config& config, const stream::Decoder& decoder)
    : classification_(is_classification(config)),
      ranges_(feature_names(decoder)),
      target_({config.decode.target.empty() ? "target" : config.decode.target}) {}

void RowSurvey::row(std::span<const float> features, std::span<const float> targets, std::string_view label) {
  ++rows_;
  ranges_.add(features);
  if (targets.empty()) return;
  if (classification_) labels_.add(label);
  if (!classification_) target_.add(targets.first(1));
}

void RowSurvey::drop(DropReason reason, std::string_view label, std::string_view detail) {
  if (reason == DropReason::filtered) {
    ++filtered_;
    return;
  }
  ++dropped_;
  auto& one = drops_.at(static_cast<std::size_t>(reason));
  if (one.rows++ == 0) one.first = detail;
  if (classification_ && !label.empty()) labels_.add(label, reason == DropReason::wrong_type);
}

void RowSurvey::take_narrowing(const stream::Decoder& decoder) {
  narrowing_ = stream::narrowing_words(decoder);
  shifts_.clear();
  if (narrowing_.empty()) return;
  for (const auto& feature : decoder.narrowing())
    shifts_.push_back(stream::loses(feature) ? stream::shift_for(feature) : 0);
}

std::string RowSurvey::describe(const Config& config) const {
  auto text = ranges_.describe(config.decode);
  text += classification_ ? labels_.describe(config) : target_.describe_target();
  text += describe_drops();
  for (const auto& words : narrowing_) text += "warning: " + printable(words) + "\n";
  return text;
}

std::string RowSurvey::describe_drops() const {
  std::string text;
  if (filtered_ > 0)
    text = fmt::format("excluded {} of {} rows: they do not match 'where'\n", filtered_,
                       filtered_ + rows_ + dropped_);
  if (dropped_ == 0) return text;
  text += fmt::format("dropped {} of {} rows:\n", dropped_, rows_ + dropped_);
  for (std::size_t i = 0; i < drops_.size(); ++i) {
    if (drops_[i].rows == 0) continue;
    text += fmt::format("  {:<16}{:>8}  {}\n", name_of(static_cast<DropReason>(i)), drops_[i].rows,
                        printable(drops_[i].first));
  }
  return text;
}

std::string RowSurvey::worst_drop() const {
  const auto most = std::max_element(drops_.begin(), drops_.end(),
                                     [](const Drop& a, const Drop& b) { return a.rows < b.rows; });
  if (most->rows == 0) return {};
  return fmt::format("{} {} ({})", most->rows,
                     name_of(static_cast<DropReason>(std::distance(drops_.begin(), most))),
                     printable(most->first));
}

void survey_record(stream::Decoder& decoder, const Record& record, RowSurvey& survey) {
  std::vector<float> features(decoder.shape().columns());
  std::vector<float> targets(decoder.shape().targets);
  decoder.begin(record);
  for (;;) {
    const auto step = decoder.next({features, targets});
    if (step.kind == stream::Decoded::Kind::end) return;
    if (step.kind == stream::Decoded::Kind::row) survey.row(features, targets, decoder.label());
    if (step.kind == stream::Decoded::Kind::dropped)
      survey.drop(step.reason, decoder.label(), decoder.detail());
  }
}

}  // namespace rivulet::runtime::cli
