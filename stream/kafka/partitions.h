#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/metrics.h"
#include "stream/kafka/client.h"
#include "stream/kafka/statistics.h"
#include "stream/source.h"

namespace rivulet::stream::kafka {

/// The partitions of a source and where each stands: read, stopped (and why), or to be settled, which means
/// that the broker must be asked whether it has the next offset, or where a new one begins. All begin so. A
/// slot is an index of config.partitions. Counts what was read and skipped. Owner: the ingest thread.
class Partitions {
 public:
  /// `config` must outlive this.
  Partitions(const KafkaSourceConfig& config, MetricsSink& metrics);

  [[nodiscard]] std::span<const PartitionState> states() const noexcept { return states_; }
  [[nodiscard]] std::size_t size() const noexcept { return states_.size(); }
  [[nodiscard]] const TopicPartition& name(std::size_t slot) const { return config_.partitions[slot]; }
  [[nodiscard]] const PartitionState& state(std::size_t slot) const { return states_[slot]; }
  /// size() if it is of none of them.
  [[nodiscard]] std::size_t slot_of(const rd_kafka_message_s& message) const noexcept;
  /// Errors: unavailable (a partition that is not one of these).
  [[nodiscard]] Result<std::vector<std::size_t>> slots_of(std::span<const NextOffset> positions) const;

  [[nodiscard]] bool is_read(std::size_t slot) const;
  [[nodiscard]] bool is_unsettled(std::size_t slot) const { return slots_[slot].unsettled; }
  void unsettle(std::size_t slot) { slots_[slot].unsettled = true; }
  /// Its leader does not answer: named as unreached once that has lasted for `grace`.
  void miss(std::size_t slot, std::string why, TimePoint now, Duration grace);
  /// Its leader has answered.
  void reached(std::size_t slot);
  /// Those whose leader the reader has not heard of for longer than it should take, by statistics that may be
  /// some seconds old: somebody should ask.
  void doubt(std::span<const Statistics::Silent> silent);
  /// To be asked about: doubted, or unreached.
  [[nodiscard]] bool is_doubtful(std::size_t slot) const;
  /// The broker has these offsets of it: it is read on, goes over a gap, or stops.
  void place(std::size_t slot, Watermarks marks);
  /// Its log is another one now: stopped for good. `anchor`: see why_other_log().
  void stop_other_log(std::size_t slot, std::int64_t anchor, Watermarks marks);
  /// The next record will be the one at `offset`. Gaps of it that nobody has taken are forgotten. A stopped
  /// one is unsettled then, unless its log is another one.
  void move_to(std::size_t slot, std::int64_t offset);
  /// A record was handed out.
  void passed(std::size_t slot, const rd_kafka_message_s& message);
  void set_paused(bool paused);
  /// What open transactions hold back, by statistics that may be some seconds old: one that this reader has
  /// passed since is none.
  void hold(std::span<const Statistics::Held> held);
  /// The broker has accepted that the next record for the group is the one at `offset`.
  void committed(std::string_view topic, std::int32_t partition, std::int64_t offset);
  /// Watermarks and lags as the client knows them from its fetches. True: a log has grown, so its broker is
  /// there.
  bool refresh(rd_kafka_s* client);
  std::vector<Gap> take_gaps();

 private:
  struct Slot {
    Counter& records;
    Counter& bytes;
    Gauge& lag;
    Gauge& stopped;
    Counter& gap_records;
    bool unsettled = true;
    bool doubted = false;
    std::optional<TimePoint> missed_since;
    bool other_log = false;
    std::int64_t committed = -1;
    Gauge* committed_lag = nullptr;  ///< from the first commit on
  };
  void skip_to(std::size_t slot, std::int64_t offset);
  void stop(std::size_t slot, std::string why);
  void go_on(std::size_t slot);

  const KafkaSourceConfig& config_;
  const Duration silence_most_;  ///< of a leader that is asked for records
  MetricsSink& metrics_;
  Gauge& paused_gauge_;
  std::vector<PartitionState> states_;
  std::vector<Slot> slots_;
  std::vector<Gap> gaps_;  ///< not taken yet; those that touch are one
};

}  // namespace rivulet::stream::kafka
