#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/assignment.h"
#include "stream/kafka/partition.h"
#include "stream/kafka/statistics.h"

namespace rivulet::stream::kafka {

/// The partitions that a source reads. Owner: the ingest thread.
class Partitions {
 public:
  /// `config` must outlive this.
  Partitions(const KafkaSourceConfig& config, MetricsSink& metrics);

  /// Ordered; addresses are stable until the partition is dropped.
  [[nodiscard]] std::map<PartitionId, Partition>& all() noexcept { return all_; }
  [[nodiscard]] const std::map<PartitionId, Partition>& all() const noexcept { return all_; }
  /// Null if the source does not read it.
  [[nodiscard]] Partition* find(const PartitionId& id) noexcept;
  [[nodiscard]] Partition* find(const rd_kafka_message_s& message) noexcept;
  /// Finds a partition by Partition::number(); null if it was dropped.
  [[nodiscard]] Partition* find_number(std::size_t number) noexcept;

  /// Errors: unavailable (a topic that the job does not have, a negative offset).
  [[nodiscard]] Status check(const Assignment& assignment) const;
  /// Drops the partitions that `assignment` does not contain.
  void keep_only(const Assignment& assignment);
  /// Returns the partition with this id; adds it, to begin at `start`, if there is none.
  Partition& gain(const PartitionId& id, std::optional<std::int64_t> start);

  /// Marks partitions whose leader has been silent for longer than expected and must be queried. The
  /// statistics may be some seconds old.
  void doubt(std::span<const Statistics::Silent> silent);
  /// Updates which partitions are blocked by open transactions. The statistics may be some seconds old.
  void set_blocked(std::span<const Statistics::Blocked> blocked);
  /// See Partition.
  void set_paused(bool paused);
  void committed(std::string_view topic, std::int32_t partition, std::int64_t offset);
  bool refresh(rd_kafka_s* client);
  std::vector<Gap> take_gaps();

  /// Copies the partitions' states for states().
  void show();
  [[nodiscard]] std::span<const PartitionState> states() const noexcept { return states_; }

 private:
  void count_assigned();

  const KafkaSourceConfig& config_;
  const Duration silence_most_;  ///< maximum silence of a leader with a pending fetch
  MetricsSink& metrics_;
  Gauge& paused_gauge_;
  std::map<PartitionId, Partition> all_;
  std::size_t gained_ = 0;  ///< count of all partitions ever added
  std::vector<PartitionState> states_;
};

}  // namespace rivulet::stream::kafka
