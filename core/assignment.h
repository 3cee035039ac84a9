#pragma once
#include <cstdint>
#include <map>
#include <optional>

#include "core/record.h"

namespace rivulet {

/// All partitions that a device reads, and the next offset of each. Partitions missing from the previous
/// assignment are added; those missing here are dropped. A partition with a cursor is read from there. The
/// train thread derives an assignment from the view and the agreed state; the ingest thread applies it.
struct Assignment {
  /// Counts the assignments of a process from 0. Each row carries the generation that it was read under, so
  /// rows still in transit from an earlier assignment can be recognized.
  std::uint32_t generation = 0;
  /// Without a cursor, reading continues at the reader's current offset. A partition that is not read yet
  /// begins at the configured start.
  std::map<PartitionId, std::optional<RowCursor>> cursors;
  bool operator==(const Assignment&) const = default;
};

}  // namespace rivulet
