#pragma once
#include <cstdint>
#include <map>
#include <optional>

#include "core/record.h"

namespace rivulet {

/// All partitions that a device reads, and the next offset of each. A partition missing from the previous
/// assignment is added, one missing here is dropped. One with a cursor is sought to it. A value: the train
/// thread derives it from the view and the agreed state, the ingest thread applies it.
struct Assignment {
  /// Counts the assignments of a process from 0. Each row carries the generation that it was read under, so
  /// rows still in transit from an earlier assignment can be recognized.
  std::uint32_t generation = 0;
  /// No cursor: continues at the reader's current offset. A partition that is not read yet begins where its
  /// configuration specifies.
  std::map<PartitionId, std::optional<RowCursor>> cursors;
  bool operator==(const Assignment&) const = default;
};

}  // namespace rivulet
