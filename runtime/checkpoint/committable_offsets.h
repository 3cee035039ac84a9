#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/record.h"

namespace rivulet::runtime {

/// Next offsets covered by the committed state. They are committed to Kafka for monitoring only. The train
/// thread writes them on commit, the ingest thread reads them about once a second; guarded by a mutex.
class CommittableOffsets {
 public:
  /// Train thread: all rows of this partition below `next` are part of the agreed state.
  void covered(const PartitionId& partition, const RowCursor& next) {
    const std::lock_guard lock(mutex_);
    offsets_[partition].offset = next.offset;
  }
  /// Ingest thread: returns next offsets that changed since the last call.
  void take_news(std::vector<NextOffset>& out) {
    out.clear();
    const std::lock_guard lock(mutex_);
    for (auto& [partition, at] : offsets_) {
      if (at.offset == at.reported) continue;
      at.reported = at.offset;
      out.push_back({partition, at.offset});
    }
  }

 private:
  struct Position {
    std::int64_t offset = -1;
    std::int64_t reported = -1;
  };
  std::mutex mutex_;
  std::map<PartitionId, Position> offsets_;
};

}  // namespace rivulet::runtime
