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

/// One partition that a source reads, from its assignment until it is dropped, with its state: whether it is
/// read, stopped (and why) or unresolved; whether its leader answers; the anchors of its log; the offset to
/// commit. A partition is unresolved while the broker must be queried for its next offset, or for where a new
/// partition begins; every partition starts unresolved. Counts records read and skipped. Owner: the ingest
/// thread.
class Partition {
 public:
  /// `number`: unique among all partitions that the source has had. `start`: first offset; nullopt for the
  /// configured start of new partitions.
  Partition(std::size_t number, TopicPartition name, std::optional<std::int64_t> start, MetricsSink& metrics);
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;
  /// Removes the gauges of a partition that is no longer read.
  void give_up();

  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  [[nodiscard]] const TopicPartition& name() const noexcept { return name_; }
  [[nodiscard]] const PartitionState& state() const noexcept { return state_; }
  [[nodiscard]] bool is_named(std::string_view topic, std::int32_t partition) const noexcept {
    return name_.id.partition == partition && name_.topic == topic;
  }

  // --- reading ---
  [[nodiscard]] bool is_read() const noexcept { return state_.stopped.empty() && !unresolved_; }
  [[nodiscard]] bool is_unresolved() const noexcept { return unresolved_; }
  /// Whether its first offset is known.
  [[nodiscard]] bool is_placed() const noexcept { return state_.next_offset >= 0; }
  void invalidate() noexcept { unresolved_ = true; }
  [[nodiscard]] const std::optional<std::int64_t>& start() const noexcept { return start_; }
  /// Seeks to the record at `offset` and discards gaps that were not reported yet. A stopped partition
  /// becomes unresolved, unless its log was replaced. A partition without a position begins there.
  void move_to(std::int64_t offset);
  /// Applies the broker's offsets: the partition continues, skips a gap (`count_gaps`), or stops. Sets the
  /// position to `begin` if it has none.
  void resolve(Watermarks marks, std::int64_t begin, bool count_gaps);
  /// Stops permanently, because the log was replaced.
  void stop_other_log(Watermarks marks);
  /// Records that `message` was returned. Its bytes live until take_newest().
  void passed(const rd_kafka_message_s& message);
  /// Returns the newest record returned by the source since the last call, or null if there is none.
  const rd_kafka_message_s* take_newest() noexcept { return std::exchange(newest_, nullptr); }
  void set_paused(bool paused) noexcept { state_.paused = paused; }
  /// Sets the offset from which an open transaction blocks reading; -1 if none does. Ignores an offset that
  /// this reader has passed since.
  void set_blocked(std::int64_t from) noexcept;
  /// Updates watermarks and lags from the client's fetches. Returns true if the log has grown, which shows
  /// that its broker answers.
  bool refresh(rd_kafka_s* client);
  void take_gaps(std::vector<Gap>& out);

  // --- leader ---
  /// Records that the partition exists, although it may be unresolved.
  void see() noexcept { seen_ = true; }
  /// Whether an earlier run or answer shows that it exists, although this broker may not list it yet.
  [[nodiscard]] bool was_there() const noexcept { return is_placed() || seen_ || start_.has_value(); }
  /// Records that its leader does not answer. Reported as unreached after `grace`.
  void miss(std::string why, TimePoint now, Duration grace);
  void reached();
  /// Marks a leader that has not answered the reader for longer than expected.
  void doubt(bool doubted) noexcept { doubted_ = doubted; }
  /// Whether its leader must be queried, because it is doubted or unreached.
  [[nodiscard]] bool is_doubtful() const noexcept { return doubted_ || !state_.unreached.empty(); }

  // --- commits ---
  /// The last offset to commit; nullopt before the first.
  [[nodiscard]] const std::optional<std::int64_t>& to_commit() const noexcept { return to_commit_; }
  void commit(std::int64_t offset) noexcept { to_commit_ = offset; }
  /// Records that the broker has accepted `offset` as the group's next offset.
  void committed(std::int64_t offset);

  /// Distinguishes its log from another log of the same name; maintained by SameLog.
  LogMemory log;

 private:
  struct Meters {
    Counter& records;
    Counter& bytes;
    Gauge& lag;
    Gauge& stopped;
    Counter& gap_records;
    Gauge* committed_lag = nullptr;  ///< created by the first commit
  };
  void skip_to(std::int64_t offset);
  void stop(std::string why);
  void resume();

  const std::size_t number_;
  const TopicPartition name_;
  const std::string label_;  ///< partition number, for metrics
  MetricsSink& metrics_;
  Meters meters_;
  PartitionState state_;
  std::optional<std::int64_t> start_;
  std::vector<Gap> gaps_;  ///< not reported yet; contiguous ones are merged
  const rd_kafka_message_s* newest_ = nullptr;
  bool unresolved_ = true;
  bool seen_ = false;
  bool doubted_ = false;
  std::optional<TimePoint> missed_since_;
  std::optional<std::int64_t> to_commit_;
  std::int64_t committed_ = -1;
};

}  // namespace rivulet::stream::kafka
