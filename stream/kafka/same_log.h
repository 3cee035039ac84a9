#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "stream/kafka/anchors.h"
#include "stream/kafka/log_probe.h"
#include "stream/kafka/partitions.h"

namespace rivulet::stream::kafka {

/// Detects that the log of a partition was replaced. Offsets do not reveal it: a topic that was deleted and
/// recreated has other records at the same offsets, without any error from broker or client (librdkafka 2.0
/// supports neither topic ids nor leader epochs). So one record per partition is remembered, in memory and in
/// a file, and looked up again at intervals. Each check makes a partition trusted for a while; after that,
/// its next record waits for the next check. Idle partitions are checked half as often: their next records
/// may be written to a different log. Owner: the ingest thread. Cost: see LogProbe, once per `every` while
/// records arrive.
class SameLog {
 public:
  struct Setup {
    Properties properties;
    std::string group_id;
    std::string file;  ///< empty: anchors are kept only in memory
    Duration every = std::chrono::seconds(30);
    Duration defer_max = std::chrono::seconds(2);
  };
  /// `partitions` must outlive this.
  SameLog(Setup setup, const Clock& clock, Partitions& partitions);

  void disable() noexcept { enabled_ = false; }  ///< for brokers that keep no records anyway
  /// Restores the anchor that an earlier process saved for a resumed partition.
  void recall(Partition& partition);
  /// Requires a check before the next record, after an anomaly.
  static void doubt(Partition& partition) { partition.log.doubted = true; }
  /// Whether a record of this partition may be returned now. If not, a check is in progress: call again. An
  /// unanswered check delays records for at most `defer_max`.
  bool trusts(Partition& partition);
  /// Records the newest record returned.
  void passed(Partition& partition, const rd_kafka_message_s& message);
  /// Advances a check; waits up to `wait` if a record waits for it. Returns a partition whose log was
  /// replaced, or null if there is none. Returns each such partition only once.
  Partition* serve(Duration wait);
  /// Whether a record waits for a check.
  [[nodiscard]] bool defers() const noexcept { return defers_; }
  /// Returns the last error from writing the file, if any, and clears it.
  std::optional<Error> take_problem();

 private:
  [[nodiscard]] bool is_fresh(const LogMemory& memory, TimePoint now) const;
  void begin_look(TimePoint now);
  Partition* take_answer(const LogProbe::Answer& answer, TimePoint now);
  void end_look(TimePoint now);
  void save();

  const Setup setup_;
  const Clock& clock_;
  Partitions& partitions_;
  const AnchorFile file_;
  bool enabled_ = true;
  bool defers_ = false;
  std::unique_ptr<LogProbe> probe_;
  TimePoint probe_ends_{};
  TimePoint next_look_{};
  std::optional<Error> problem_;
};

}  // namespace rivulet::stream::kafka
