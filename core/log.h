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
  std::int64_t offset = 0;          ///< unique, strictly increasing, possibly with gaps
  std::int64_t append_time_ms = 0;  ///< broker log-append time, comparable between devices
  std::span<const std::byte> bytes;
};

/// A totally ordered, shared, replayable sequence of small records: one Kafka partition, or memory.
/// Owner: one thread (Worker), except append(), which any thread may call.
class OrderedLog {
 public:
  virtual ~OrderedLog() = default;
  /// Queues one record and returns immediately. The record is in the log when poll() returns it. A failed
  /// write is reported as an error of a later poll(). Errors: unavailable (queue full or closed).
  virtual Status append(std::span<const std::byte> bytes) = 0;
  /// Returns up to max_entries new records, in order; empty if there are none yet. Never waits. Errors:
  /// unavailable (topic missing, more than one partition, broker not reachable within its deadline),
  /// source_lost (connection lost; poll again), bad_record (the next records were deleted, so the log is no
  /// longer the same; final).
  virtual Result<std::span<const LogEntry>> poll(std::size_t max_entries) = 0;
  /// True once every record that existed when the log was opened has been returned.
  [[nodiscard]] virtual bool caught_up() const = 0;
  /// Other jobs with a log of this kind at the same brokers: a device that waits alone may have a misspelled
  /// job name. Available once the log is open; incomplete if there are many.
  [[nodiscard]] virtual std::vector<std::string> other_jobs() const { return {}; }
};

}  // namespace rivulet
