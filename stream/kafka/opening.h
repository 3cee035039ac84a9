#pragma once
#include <map>
#include <string>
#include <vector>

#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// Finds out what a source has to know before its first record: do the topics and partitions exist, and at
/// which absolute offset does each begin (a logical start would cost half a second of librdkafka's own
/// waiting). Asked again and again until it is done; each attempt blocks for a bounded time.
class Opening {
 public:
  Opening(const KafkaSourceConfig& config, const Clock& clock);

  /// One attempt that blocks at most about `patience`. True: all offsets are known.
  /// Errors: unavailable (what is missing, or after open_deadline).
  Result<bool> attempt(rd_kafka_s* client, Duration patience, const std::string& last_words);

  /// As config.partitions. Where a state or the user wants to begin, whether the broker has that or not.
  [[nodiscard]] const std::vector<std::int64_t>& offsets() const noexcept { return offsets_; }
  [[nodiscard]] const std::vector<Watermarks>& watermarks() const noexcept { return watermarks_; }
  /// Continue here instead; before it is done.
  void set_start(PartitionId id, std::int64_t offset) {
    resume_[id] = offset;
    offsets_.clear();  // of the attempt so far
    watermarks_.clear();
  }

 private:
  Result<bool> check_topics(rd_kafka_s* client, Duration patience, const std::string& last_words);
  Result<bool> not_yet(const std::string& why) const;
  [[nodiscard]] std::int64_t start_of(const TopicPartition& partition, Watermarks marks) const;

  const KafkaSourceConfig& config_;
  const Clock& clock_;
  std::string brokers_;
  TimePoint deadline_;
  std::map<PartitionId, std::int64_t> resume_;
  bool topics_checked_ = false;
  std::vector<std::int64_t> offsets_;
  std::vector<Watermarks> watermarks_;
};

/// "topic "mnist", partition 3"
std::string name_of(const TopicPartition& partition);

}  // namespace rivulet::stream::kafka
