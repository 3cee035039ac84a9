#pragma once
#include <cstdint>
#include <map>
#include <optional>

#include "core/record.h"

namespace rivulet {

/// The partitions that a device reads, all of them, and where it reads on. A partition that it did not read
/// before is gained, one that is not named is given up, one with a cursor is sought there. A value: the train
/// thread makes it of the view and the agreed state, the ingest thread carries it out.
struct Assignment {
  /// Counts the assignments of a process from 0. Rows carry the one that they were read by, so that those
  /// which are still on their way when a later one comes can be told apart.
  std::uint32_t generation = 0;
  /// No cursor: from where the reader stands, and if it does not read the partition yet, from where its
  /// configuration begins one.
  std::map<PartitionId, std::optional<RowCursor>> cursors;
  bool operator==(const Assignment&) const = default;
};

}  // namespace rivulet
