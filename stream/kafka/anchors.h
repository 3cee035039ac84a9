#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/digest.h"
#include "core/result.h"
#include "core/time.h"
#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// Position and fingerprint of a record that was read. Distinguishes logs of the same name.
struct Anchor {
  std::int64_t offset = 0;
  Digest fingerprint;
  bool operator==(const Anchor&) const = default;
};

/// Remembered properties of a partition's log. Only SameLog changes it.
struct LogMemory {
  std::optional<Anchor> good;    ///< anchor in the trusted log
  std::optional<Anchor> newest;  ///< anchor of the newest record returned since
  std::optional<Anchor> next;    ///< replaces `good` when the check in progress finds the old record
  TimePoint looked{};            ///< the log is trusted from this time on
  std::optional<TimePoint> deferred_since;
  bool doubted = false;
  bool other = false;  ///< the log differs from the one read before
};

/// Returns the offset of a record and a fingerprint of its time, key and value.
Anchor anchor_of(const rd_kafka_message_s& message);

/// Anchors that survive the process: one small text file, replaced as a whole. Not synced: after a power loss
/// it may be an older version, which only weakens a check. One entry per partition.
class AnchorFile {
 public:
  /// An empty `path` disables the file.
  explicit AnchorFile(std::string path) : path_(std::move(path)) {}
  struct Entry {
    TopicPartition partition;
    Anchor anchor;
  };
  /// Unreadable content counts as absent.
  [[nodiscard]] std::optional<Anchor> read(const TopicPartition& partition) const;
  /// Replaces the whole file. Errors: io (file and reason).
  Status write(const std::vector<Entry>& entries) const;

 private:
  std::string path_;
};

}  // namespace rivulet::stream::kafka
