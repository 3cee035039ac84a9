#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/digest.h"
#include "core/result.h"
#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// A record that was read: where, and what it was. Distinguishes logs of the same name.
struct Anchor {
  std::int64_t offset = 0;
  Digest fingerprint;
  bool operator==(const Anchor&) const = default;
};

/// Of a record's time, key and value.
Anchor anchor_of(const rd_kafka_message_s& message);

/// Anchors that outlive the process: one small text file, replaced as a whole, not synced (after a loss of
/// power it may be an older one, and nothing depends on it but a check). One entry per partition.
class AnchorFile {
 public:
  /// `path` empty: nothing is kept.
  explicit AnchorFile(std::string path) : path_(std::move(path)) {}
  /// In the order of `partitions`; nullopt where the file has none. What cannot be read is as if it were not
  /// there.
  [[nodiscard]] std::vector<std::optional<Anchor>> read(const std::vector<TopicPartition>& partitions) const;
  /// Entries of other partitions are dropped. Errors: io (file and reason).
  Status write(const std::vector<TopicPartition>& partitions,
               const std::vector<std::optional<Anchor>>& anchors) const;

 private:
  std::string path_;
};

}  // namespace rivulet::stream::kafka
