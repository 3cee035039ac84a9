#pragma once
#include <optional>
#include <string>
#include <vector>

#include "stream/kafka/notices.h"
#include "stream/kafka/partitions.h"
#include "stream/kafka/surveyor.h"

namespace rivulet::stream::kafka {

/// Finds out what a source has to know of its partitions before it reads them: do they exist, at which
/// absolute offset does each begin (a logical start would cost half a second of librdkafka's own waiting),
/// and does the broker have the next offset. Each is settled by itself, as soon as its leader answers, and
/// asked about again and again until then. One whose leader falls silent while it is read is asked about
/// through a client of its own, which waits behind nothing that the reader has under way. Owner: the ingest
/// thread, which never waits here but in wait().
class Settling {
 public:
  Settling(const KafkaSourceConfig& config, Partitions& partitions, Notices& notices);

  /// Asks and places. True: what is to be read has changed.
  /// Errors: unavailable (at the start: a partition that does not exist; after open_deadline a topic that
  /// does not, or that no partition could be settled: why).
  /// `client` must live until the survey through it is over, or this object is gone.
  Result<bool> serve(rd_kafka_s* client, TimePoint now);
  /// A survey through the client of the last serve() is under way.
  [[nodiscard]] bool uses_client() const noexcept { return survey_.busy(); }
  /// Until an answer has come, or no survey is under way; `longest` at most.
  void wait(Duration longest) { survey_.wait(longest); }
  /// Some partition was settled once.
  [[nodiscard]] bool any_settled() const noexcept { return any_settled_; }

 private:
  void ask(rd_kafka_s* client, TimePoint now);
  void ask_about_doubts(TimePoint now);
  Status take(const Finding& finding, TimePoint now, bool& changed);
  Status judge_start(Partition& partition, const Finding& finding, const std::string& why, TimePoint now);
  [[nodiscard]] std::int64_t start_of(const Partition& partition, Watermarks marks) const;
  [[nodiscard]] std::string why(const Partition& partition, const Finding& finding) const;

  const KafkaSourceConfig& config_;
  Partitions& partitions_;
  Notices& notices_;
  const std::string brokers_;
  std::optional<TimePoint> deadline_;  ///< of the first answer, from the first question on
  bool any_settled_ = false;
  TimePoint next_ask_{};
  TimePoint next_doubt_{};
  NobodyListens nobody_listens_;
  Surveyor survey_;  ///< of what is not settled, through the reader's client
  Surveyor doubts_;  ///< of what falls silent
};

}  // namespace rivulet::stream::kafka
