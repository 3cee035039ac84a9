#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/clock.h"
#include "runtime/process/log.h"
#include "runtime/status/node_status.h"
#include "stream/source.h"

namespace rivulet::runtime {

/// Reports the state of each partition of this device on the status page. Logs when a partition stops,
/// resumes, is unreachable, skips a gap, is blocked by an open transaction, or delivers no more records.
/// Owner: the ingest thread. Cost: copies a few values twice a second.
class PartitionWatch {
 public:
  /// `topics`: names of the job's topics, in the order of PartitionId::topic; may be empty.
  PartitionWatch(std::vector<std::string> topics, NodeStatus& status, Logger& log)
      : topics_(std::move(topics)), status_(status), log_(log) {}
  void look(const stream::RecordSource& source, TimePoint now);

 private:
  struct Reported {
    std::string stopped;
    std::string unreached;
    std::int64_t skipped = 0;
    std::int64_t blocked_from = -1;
    TimePoint blocked_since{};
    bool blocked = false;  ///< blocked, and reported as blocked
    std::int64_t next_offset = -1;
    TimePoint moved_at{};
    Duration patience = std::chrono::seconds(10);  ///< time before a report of silence; doubles each time
    bool silent = false;                           ///< and reported
  };
  void report(const stream::PartitionState& state, Reported& reported, TimePoint now);
  void report_transaction(const stream::PartitionState& state, Reported& reported, TimePoint now);
  void report_silence(const stream::PartitionState& state, Reported& reported, TimePoint now);
  [[nodiscard]] Fields place_of(const stream::PartitionState& state) const;

  const std::vector<std::string> topics_;
  NodeStatus& status_;
  Logger& log_;
  std::map<PartitionId, Reported> reported_;  ///< reports of each partition that is read
  bool reported_all_stopped_ = false;
  TimePoint next_{};
};

}  // namespace rivulet::runtime
