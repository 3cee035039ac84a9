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

/// What is known of one partition; -1 = not known (yet).
struct PartitionState {
  PartitionId id;
  std::int64_t next_offset = -1;  ///< next record poll() will hand out
  std::int64_t low_watermark = -1;
  std::int64_t high_watermark = -1;  ///< where the log ends
  /// From this offset on an open transaction holds the records back, as of the last look every few seconds;
  /// -1: nothing is held back.
  std::int64_t held_from = -1;
  bool paused = false;
  std::int64_t skipped = 0;  ///< offsets gone over because they were deleted unread (take_gaps())
  /// Why nothing more is read here, with topic, partition, offset and watermarks; empty: it is read.
  std::string stopped = {};
  /// Why nothing can be read here at the moment, with topic, partition, and the broker that does not answer;
  /// it is asked again and again. Named within 10 s. Empty: it answers, or was not missed yet.
  std::string unreached = {};
};

/// Offsets [from, to) of a partition that were deleted before they could be read.
struct Gap {
  PartitionId partition;
  std::int64_t from = 0;
  std::int64_t to = 0;
  bool operator==(const Gap&) const = default;
};

/// Where records come from: Kafka, a file, a generator, a script. Reads nothing until it is assigned to.
/// Owner: the ingest thread makes every call. Records of one partition come in offset order.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// At most max_records; empty if none within max_wait. max_records = 0 means "no room": the source holds
  /// its partitions back (pause) and keeps serving its client. The views live until the next poll().
  /// A partition that cannot continue stops alone: PartitionState::stopped has the reason; the others are
  /// still read.
  /// Errors: unavailable (topic, partition or broker missing at start), source_lost (poll again later),
  /// bad_record (the source as a whole cannot continue; names file, line or offset).
  virtual Result<std::span<const Record>> poll(std::size_t max_records, Duration max_wait) = 0;
  /// The records of the last poll() are still in use: serves the client, and their views stay valid.
  virtual void hold() {}
  /// Gaps found since the last call, each once, in order. To be taken after each poll(): they lie before the
  /// records which that poll handed out of the partition, and behind those of earlier polls. A partition that
  /// is given up or sought elsewhere forgets its gaps not taken yet; those of the latter are found again.
  virtual std::vector<Gap> take_gaps() { return {}; }
  /// Publishes how far the agreed state has come, for monitoring. Asynchronous, at least once: what
  /// failed is sent again. Positions of partitions that are not assigned are ignored: they were given up
  /// since. Errors: source_lost.
  virtual Status commit(std::span<const NextOffset> positions) = 0;
  /// Reads these partitions from now on and no others, each from the offset of its cursor; a record is handed
  /// out whole, whatever row of it the cursor names. What was handed out and not used is forgotten. After an
  /// error the same assignment may be given again. Errors: unavailable (a partition that it cannot have, a
  /// negative offset: nothing has changed), source_lost.
  virtual Status assign(const Assignment& assignment) = 0;
  /// State of every partition that is assigned, in order, as of the last poll() or assign().
  [[nodiscard]] virtual std::span<const PartitionState> partitions() const noexcept = 0;
  /// Why nothing comes although it is asked for: "no broker of kafka:9092 can be reached (...)". How far the
  /// log has grown since is not known then. Empty: the broker that has the records answers.
  [[nodiscard]] virtual std::string_view unreachable() const noexcept { return {}; }
  /// True when no record will ever come again (a finished file or script); never for a live stream.
  [[nodiscard]] virtual bool exhausted() const noexcept = 0;
  /// When the next record is known to be due, for sources that know it (a script); max() otherwise.
  [[nodiscard]] virtual TimePoint next_due() const noexcept { return TimePoint::max(); }
};

}  // namespace rivulet::stream
