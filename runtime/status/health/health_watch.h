#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/metrics.h"
#include "runtime/process/log.h"
#include "runtime/status/health/conditions.h"
#include "runtime/status/node_status.h"

namespace rivulet::runtime {

/// Evaluates the device's health periodically from NodeStatus and its changes. Publishes the verdict to
/// NodeStatus::health() and the metrics ready, health_condition and unclaimed_partitions. Logs when a
/// condition begins or ends. Owner: the ingest thread. Cost: copies some numbers and strings twice a second.
class HealthWatch {
 public:
  HealthWatch(HealthSetup setup, NodeStatus& status, MetricsSink& metrics, Logger& log);
  void look(TimePoint now);

 private:
  using Reasons = std::array<std::uint64_t, drop_reasons>;
  /// Counts failures since the last success.
  class RunCount {
   public:
    /// Takes running totals of successes and of failures by reason. Returns the current run of failures.
    BadRun look(std::uint64_t good, const Reasons& bad, TimePoint now);

   private:
    std::uint64_t good_ = 0;
    Reasons before_{};
    std::uint64_t count_ = 0;
    std::optional<TimePoint> first_;
    TimePoint last_{};
  };
  struct Standing {
    std::string state, reason;
    std::int64_t next_offset = -1;
    TimePoint since{};
  };
  void look_at_stream(VitalSigns& signs, TimePoint now);
  void look_at_rows(VitalSigns& signs, TimePoint now);
  void look_at_partitions(VitalSigns& signs, TimePoint now);
  void look_at_loss(VitalSigns& signs, TimePoint now);
  void look_at_training(VitalSigns& signs, TimePoint now);
  void publish(Health health);

  // constant
  const HealthSetup setup_;
  NodeStatus& status_;
  Logger& log_;
  Gauge& ready_;
  Gauge& unclaimed_;
  std::vector<Gauge*> holds_;  ///< in the order of conditions()
  // ingest thread
  TimePoint next_{};
  std::optional<TimePoint> began_;
  RunCount refused_, rowless_, lost_;
  std::map<std::pair<std::string, std::int32_t>, Standing> standing_;
  std::uint64_t records_ = 0;
  TimePoint record_at_{};
  Duration longest_gap_{};
  std::uint64_t steps_ = 0;
  std::optional<TimePoint> stalled_since_;
  std::optional<TimePoint> diverged_since_;
  double diverged_from_ = 0;
  std::vector<Finding> reported_;
};

}  // namespace rivulet::runtime
