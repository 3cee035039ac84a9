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

/// A record that was read: where, and what it was. Distinguishes logs of the same name.
struct Anchor {
  std::int64_t offset = 0;
  Digest fingerprint;
  bool operator==(const Anchor&) const = default;
};

/// What a partition remembers of its log (see SameLog, which alone changes it).
struct LogMemory {
  std::optional<Anchor> good;    ///< of the log that is trusted
  std::optional<Anchor> newest;  ///< handed out since
  std::optional<Anchor> next;    ///< becomes the good one when the look that is under way finds the old one
  TimePoint looked{};            ///< trusted from here on
  std::optional<TimePoint> held_since;
  bool doubted = false;
  bool other = false;  ///< it is not the log that was read before
};

/// Of a record's time, key and value.
Anchor anchor_of(const rd_kafka_message_s& message);

/// Anchors that outlive the process: one small text file, replaced as a whole, not synced (after a loss of
/// power it may be an older one, and nothing depends on it but a check). One entry per partition.
class AnchorFile {
 public:
  /// `path` empty: nothing is kept.
  explicit AnchorFile(std::string path) : path_(std::move(path)) {}
  struct Entry {
    TopicPartition partition;
    Anchor anchor;
  };
  /// What cannot be read is as if it were not there.
  [[nodiscard]] std::optional<Anchor> read(const TopicPartition& partition) const;
  /// Replaces all that the file has. Errors: io (file and reason).
  Status write(const std::vector<Entry>& entries) const;

 private:
  std::string path_;
};

}  // namespace rivulet::stream::kafka
