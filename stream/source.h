#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/assignment.h"
#include "core/record.h"
#include "core/result.h"
#include "core/time.h"

namespace rivulet::stream {

/// State of one partition. Offsets are -1 while unknown.
struct PartitionState {
  PartitionId id;
  std::int64_t next_offset = -1;  ///< offset of the next record that poll() will return
  std::int64_t low_watermark = -1;
  std::int64_t high_watermark = -1;  ///< end of the log
  /// Offset from which an open transaction blocks reading, checked every few seconds; -1 if there is none.
  std::int64_t blocked_from = -1;
  bool paused = false;
  std::int64_t skipped = 0;  ///< offsets skipped because they were deleted unread (take_gaps())
  /// Why this partition is no longer read, with topic, partition, offset and watermarks; empty if it is read.
  std::string stopped = {};
  /// Why this partition cannot be read at present, with topic, partition, and the broker that does not
  /// answer. Retried continuously; reported within 10 s. Empty if its broker answers, or is not overdue yet.
  std::string unreached = {};
};

/// Offsets [from, to) of a partition that were deleted before they were read.
struct Gap {
  PartitionId partition;
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool operator==(const Gap&) const = default;
};

/// A source of records: Kafka, a file, a generator, a script. Reads nothing before assign(). Owner: the
/// ingest thread makes every call. Records of one partition come in offset order.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// Returns up to max_records; empty if none arrived within max_wait. max_records = 0 means that there is no
  /// space: the source pauses its partitions and keeps serving its client. The views are valid until the next
  /// poll(). If a partition cannot continue, only that one stops, with the reason in PartitionState::stopped;
  /// the others are still read. Errors: unavailable (topic, partition or broker missing at start),
  /// source_lost (poll again later), bad_record (the whole source cannot continue; names file, line or
  /// offset).
  virtual Result<std::span<const Record>> poll(std::size_t max_records, Duration max_wait) = 0;
  /// Serves the client while the records of the last poll() are still in use; their views stay valid.
  virtual void keep_alive() {}
  /// Returns the gaps found since the last call, in order. Call after each poll(): in each partition, they
  /// precede the records returned by that poll and follow those of earlier polls. Dropping a partition or
  /// seeking in it discards its pending gaps; after a seek they are found again.
  virtual std::vector<Gap> take_gaps() { return {}; }
  /// Publishes the progress of the agreed state, for monitoring. Asynchronous, at least once: failed commits
  /// are retried. Ignores positions of partitions that are no longer assigned. Errors: source_lost.
  virtual Status commit(std::span<const NextOffset> positions) = 0;
  /// Replaces the assignment: reads exactly these partitions, each from the offset of its cursor. Returns
  /// whole records, even if a cursor points to a later row of one. Discards records that were returned but
  /// not used. After an error, the same assignment may be passed again. Errors: unavailable (an impossible
  /// partition, a negative offset: nothing has changed), source_lost.
  virtual Status assign(const Assignment& assignment) = 0;
  /// State of every assigned partition, in order, as of the last poll() or assign().
  [[nodiscard]] virtual std::span<const PartitionState> partitions() const noexcept = 0;
  /// Why no records arrive although they are requested: "no broker of kafka:9092 can be reached (...)". The
  /// growth of the log is then unknown. Empty if the brokers that have the records answer.
  [[nodiscard]] virtual std::string_view unreachable() const noexcept { return {}; }
  /// True if no further record will ever come (a finished file or script); never for a live stream.
  [[nodiscard]] virtual bool exhausted() const noexcept = 0;
  /// Due time of the next record, for sources that know it (a script); max() otherwise.
  [[nodiscard]] virtual TimePoint next_due() const noexcept { return TimePoint::max(); }
};

}  // namespace rivulet::stream
