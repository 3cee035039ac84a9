#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "core/record.h"

namespace rivulet::runtime {

/// The one arrow that goes back: which offsets the agreed state covers, for monitoring. Written by the train
/// thread when a state is committed, read by the ingest thread about once a second: a mutex.
class CommittableOffsets {
 public:
  /// Train thread: everything below `next` of this partition is part of the agreed state.
  void covered(const PartitionId& partition, const RowCursor& next) {
    const std::lock_guard lock(mutex_);
    offsets_[partition].offset = next.offset;
  }
  /// Ingest thread: positions that moved since the last call.
  void take_news(std::vector<NextOffset>& out) {
    out.clear();
    const std::lock_guard lock(mutex_);
    for (auto& [partition, at] : offsets_) {
      if (at.offset == at.told) continue;
      at.told = at.offset;
      out.push_back({partition, at.offset});
    }
  }

 private:
  struct Position {
    std::int64_t offset = -1;
    std::int64_t told = -1;
  };
  std::mutex mutex_;
  std::map<PartitionId, Position> offsets_;
};

}  // namespace rivulet::runtime
