#pragma once
#include <cstdint>
#include <vector>

#include "core/metrics.h"
#include "runtime/process/log.h"
#include "stream/decoder.h"

namespace rivulet::runtime {

/// Watches features during decoding. Counts missing values as a metric (64 features by name, the rest
/// together). Warns once if the first thousand rows show that 32 bits cannot hold the values. Ingest thread.
class FeatureWatch {
 public:
  /// Starts comparing the decoder's values before and after narrowing to 32 bits.
  FeatureWatch(stream::Decoder& decoder, MetricsSink& metrics, Logger& log);
  /// Call after decoding. `rows`: number of valid rows since the last call.
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
