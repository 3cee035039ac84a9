#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/metrics.h"
#include "stream/kafka/anchors.h"
#include "stream/kafka/client.h"
#include "stream/source.h"

namespace rivulet::stream::kafka {

/// One partition that a source reads, from when it is gained until it is given up, and all that the source
/// knows of it: where it stands (read, stopped and why, or to be settled, which means that the broker must be
/// asked whether it has the next offset, or where a new partition begins), whether its leader answers, what
/// is remembered of its log, what is to be committed. Begins to be settled. Counts what was read and skipped.
/// Owner: the ingest thread.
class Partition {
 public:
  /// `number`: no other partition of the source has or had it. `start`: where to begin; none: where the
  /// configuration begins a new one.
  Partition(std::size_t number, TopicPartition name, std::optional<std::int64_t> start, MetricsSink& metrics);
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;
  /// It is read no more: its gauges end.
  void give_up();

  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  [[nodiscard]] const TopicPartition& name() const noexcept { return name_; }
  [[nodiscard]] const PartitionState& state() const noexcept { return state_; }
  [[nodiscard]] bool is_named(std::string_view topic, std::int32_t partition) const noexcept {
    return name_.id.partition == partition && name_.topic == topic;
  }

  // --- where it stands ---
  [[nodiscard]] bool is_read() const noexcept { return state_.stopped.empty() && !unsettled_; }
  [[nodiscard]] bool is_unsettled() const noexcept { return unsettled_; }
  /// Its first offset is known.
  [[nodiscard]] bool is_placed() const noexcept { return state_.next_offset >= 0; }
  void unsettle() noexcept { unsettled_ = true; }
  [[nodiscard]] const std::optional<std::int64_t>& start() const noexcept { return start_; }
  /// The next record will be the one at `offset`. Gaps that nobody has taken are forgotten. A stopped one is
  /// unsettled then, unless its log is another one. One that is not placed yet begins there.
  void move_to(std::int64_t offset);
  /// The broker has these offsets of it: it is read on, goes over a gap (`count_gaps`), or stops. Placed at
  /// `begin` if it was not.
  void settle(Watermarks marks, std::int64_t begin, bool count_gaps);
  /// Its log is another one now: stopped for good.
  void stop_other_log(Watermarks marks);
  /// A record was handed out; it lives until take_newest().
  void passed(const rd_kafka_message_s& message);
  /// The newest record handed out since the last call; null: none.
  const rd_kafka_message_s* take_newest() noexcept { return std::exchange(newest_, nullptr); }
  void set_paused(bool paused) noexcept { state_.paused = paused; }
  /// From here on an open transaction holds records back; -1: nothing is held. One that this reader has
  /// passed since is none.
  void set_held(std::int64_t from) noexcept;
  /// Watermarks and lags as the client knows them from its fetches. True: the log has grown, so its broker is
  /// there.
  bool refresh(rd_kafka_s* client);
  void take_gaps(std::vector<Gap>& out);

  // --- its leader ---
  /// It exists, though it may not be settled.
  void see() noexcept { seen_ = true; }
  /// An earlier run or answer shows that it was there, though this broker may not know it yet.
  [[nodiscard]] bool was_there() const noexcept { return is_placed() || seen_ || start_.has_value(); }
  /// Its leader does not answer: named as unreached once that has lasted for `grace`.
  void miss(std::string why, TimePoint now, Duration grace);
  void reached();
  /// The reader has not heard of its leader for longer than it should take.
  void doubt(bool doubted) noexcept { doubted_ = doubted; }
  /// To be asked about: doubted, or unreached.
  [[nodiscard]] bool is_doubtful() const noexcept { return doubted_ || !state_.unreached.empty(); }

  // --- its commits ---
  /// The last offset to commit; none yet.
  [[nodiscard]] const std::optional<std::int64_t>& to_commit() const noexcept { return to_commit_; }
  void commit(std::int64_t offset) noexcept { to_commit_ = offset; }
  /// The broker has accepted that the next record for the group is the one at `offset`.
  void committed(std::int64_t offset);

  /// What tells its log from another one of the same name: SameLog's.
  LogMemory log;

 private:
  struct Meters {
    Counter& records;
    Counter& bytes;
    Gauge& lag;
    Gauge& stopped;
    Counter& gap_records;
    Gauge* committed_lag = nullptr;  ///< from the first commit on
  };
  void skip_to(std::int64_t offset);
  void stop(std::string why);
  void go_on();

  const std::size_t number_;
  const TopicPartition name_;
  const std::string label_;  ///< its number, for metrics
  MetricsSink& metrics_;
  Meters meters_;
  PartitionState state_;
  std::optional<std::int64_t> start_;
  std::vector<Gap> gaps_;  ///< not taken yet; those that touch are one
  const rd_kafka_message_s* newest_ = nullptr;
  bool unsettled_ = true;
  bool seen_ = false;
  bool doubted_ = false;
  std::optional<TimePoint> missed_since_;
  std::optional<std::int64_t> to_commit_;
  std::int64_t committed_ = -1;
};

}  // namespace rivulet::stream::kafka
