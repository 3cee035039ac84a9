#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace rivulet {

/// One record of an ordered log. `bytes` is valid until the next poll().
struct LogEntry {
  std::int64_t offset = 0;  ///< unique, strictly increasing, with holes possible
  std::int64_t append_time_ms =
      0;  ///< the log's own clock (broker log-append time), comparable between devices
  std::span<const std::byte> bytes;
};

/// A totally ordered, shared, replayable sequence of small records: one Kafka partition, or memory.
/// Owner: one thread (Worker), except append(), which any thread may call.
class OrderedLog {
 public:
  virtual ~OrderedLog() = default;
  /// Queues one record and returns at once; it exists when poll() hands it back. A record that could
  /// not be written shows as an error of a later poll(). Errors: unavailable (queue full or closed).
  virtual Status append(std::span<const std::byte> bytes) = 0;
  /// Records not yet seen, in order, at most max_entries; empty when there are none now. Never waits.
  /// Errors: unavailable (topic missing, more than one partition, broker not reachable within its
  /// deadline), source_lost (was there and went away; poll again), bad_record (what comes next was deleted:
  /// it is not the same log any more; final).
  virtual Result<std::span<const LogEntry>> poll(std::size_t max_entries) = 0;
  /// True once everything that existed when the log was opened has been handed out.
  [[nodiscard]] virtual bool caught_up() const = 0;
  /// The jobs that have a log of this kind in the same place, but for this one: who waits alone may have a
  /// wrong name. Known once the log is open; some, if they are many.
  [[nodiscard]] virtual std::vector<std::string> other_jobs() const { return {}; }
};

}  // namespace rivulet
