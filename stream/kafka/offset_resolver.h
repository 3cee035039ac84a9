#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stream/kafka/notices.h"
#include "stream/kafka/partitions.h"
#include "stream/kafka/surveyor.h"

namespace rivulet::stream::kafka {

/// Determines what a source needs before it reads a partition: whether it exists, at which absolute offset it
/// begins (a logical start costs half a second of waiting inside librdkafka), and whether the broker has the
/// next offset. Each partition is resolved separately, as soon as its leader answers, and queried repeatedly
/// until then. If a leader falls silent during reading, a separate client queries it, so that the query is
/// not queued behind the reader's requests. Owner: the ingest thread, which blocks only in wait().
class OffsetResolver {
 public:
  OffsetResolver(const KafkaSourceConfig& config, Partitions& partitions, Notices& notices);

  /// Sends queries and applies answers. Returns true if the set of readable partitions has changed. Errors:
  /// unavailable (at the start: a partition that does not exist; after open_deadline: a missing topic, or the
  /// reason why no partition could be resolved). `client` must outlive the survey that uses it, or this
  /// object.
  Result<bool> serve(rd_kafka_s* client, TimePoint now);
  /// Whether a survey is using the client of the last serve().
  [[nodiscard]] bool uses_client() const noexcept { return survey_.busy(); }
  /// Waits up to `longest` until an answer has arrived or no survey is in progress.
  void wait(Duration longest) { survey_.wait(longest); }
  /// Whether any partition was ever resolved.
  [[nodiscard]] bool any_resolved() const noexcept { return any_resolved_; }

 private:
  void query(rd_kafka_s* client, TimePoint now);
  void query_doubtful(TimePoint now);
  Status take(const Finding& finding, TimePoint now, bool& changed);
  Status judge_start(Partition& partition, const Finding& finding, const std::string& why, TimePoint now);
  [[nodiscard]] std::int64_t start_of(const Partition& partition, Watermarks marks) const;
  [[nodiscard]] std::string why(const Partition& partition, const Finding& finding) const;

  const KafkaSourceConfig& config_;
  Partitions& partitions_;
  Notices& notices_;
  const std::string brokers_;
  std::optional<TimePoint> deadline_;  ///< for the first answer; set by the first query
  bool any_resolved_ = false;
  TimePoint next_query_{};
  TimePoint next_doubt_{};
  NobodyListens nobody_listens_;
  Surveyor survey_;  ///< unresolved partitions, through the reader's client
  Surveyor doubts_;  ///< partitions with a silent leader
};

}  // namespace rivulet::stream::kafka
