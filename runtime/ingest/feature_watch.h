#pragma once
#include <cstdint>
#include <vector>

#include "core/metrics.h"
#include "runtime/process/log.h"
#include "stream/decoder.h"

namespace rivulet::runtime {

/// What features are like while rows are decoded: how often each is missing, as a metric (64 of them, all
/// others together), and whether 32 bits can hold their numbers, which the first thousand rows show: a
/// warning, once. Ingest thread.
class FeatureWatch {
 public:
  /// Begins to compare rows.
  FeatureWatch(stream::Decoder& decoder, MetricsSink& metrics, Logger& log);
  /// After rows were decoded: N more good ones.
  void look(std::uint64_t rows);

 private:
  void publish_missing();
  void judge_narrowing();

  stream::Decoder& decoder_;
  Logger& log_;
  std::vector<Counter*> missing_;
  std::vector<std::uint64_t> published_;
  std::uint64_t rows_ = 0;
  bool comparing_ = true;
};

}  // namespace rivulet::runtime
