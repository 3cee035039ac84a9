#include "runtime/ingest/feature_watch.h"

#include <string>

#include "core/printable.h"
#include "stream/narrowing.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t features_named = 64;
// Rows to compare: the first rows suffice to detect lost precision.
constexpr std::uint64_t rows_enough = 50;
constexpr std::uint64_t rows_compared = 1000;

}  // namespace

FeatureWatch::FeatureWatch(stream::Decoder& decoder, MetricsSink& metrics, Logger& log)
    : decoder_(decoder), log_(log), published_(decoder.missing().size()) {
  for (std::size_t i = 0; i < published_.size(); ++i) {
    const std::string name = i < features_named ? decoder.column_name(i) : "other";
    missing_.push_back(&metrics.counter("feature_missing_total", {{"feature", printable(name)}}));
  }
  decoder_.watch_narrowing(true);
}

void FeatureWatch::look(std::uint64_t rows) {
  publish_missing();
  rows_ += rows;
  if (comparing_ && rows_ >= rows_enough) judge_narrowing();
}

void FeatureWatch::publish_missing() {
  const auto counts = decoder_.missing();
  for (std::size_t i = 0; i < published_.size(); ++i) {
    if (counts[i] == published_[i]) continue;
    missing_[i]->add(static_cast<double>(counts[i] - published_[i]));
    published_[i] = counts[i];
  }
}

void FeatureWatch::judge_narrowing() {
  const auto words = stream::narrowing_words(decoder_);
  for (const auto& sentence : words) log_.write(Level::warn, printable(sentence));
  comparing_ = words.empty() && rows_ < rows_compared;
  if (!comparing_) decoder_.watch_narrowing(false);
}

}  // namespace rivulet::runtime
