#pragma once
#include <memory>
#include <string>

#include "core/clock.h"
#include "core/metrics.h"
#include "core/result.h"
#include "runtime/config/config.h"
#include "stream/dataset.h"
#include "tests/support/replay/replay_rows.h"

namespace rivulet::runtime {

/// Opens recorded streams again: partitions of the configured source, from their broker or file, or
/// regenerated from the seed; or a data set, as in `rivulet simulate --data`. Must outlive the opened
/// streams.
class ReplayStreams {
 public:
  /// `data`: a data set; empty = the source of the configuration. Errors: io (data set).
  static Result<std::unique_ptr<ReplayStreams>> create(const Config& config, const std::string& data);
  /// Errors: invalid_config (properties), unavailable.
  Result<ReplayStream> open(const PartitionId& partition, std::int64_t offset);

 private:
  explicit ReplayStreams(const Config& config) : config_(config) {}
  Result<ReplayStream> open_kafka(const PartitionId& partition, std::int64_t offset);

  const Config config_;
  RealClock clock_;
  NullMetrics metrics_;
  std::unique_ptr<stream::Dataset> data_;
};

}  // namespace rivulet::runtime
