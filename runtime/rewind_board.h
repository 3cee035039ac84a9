#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "core/record.h"

namespace rivulet::runtime {

/// Where each partition must be read from anew.
using RowCursors = std::map<PartitionId, RowCursor>;

/// The train thread asks the ingest thread to read again from other positions: the group has adopted a state
/// in which this device's rows stand elsewhere. Rows carry the generation they were read in, so that those
/// still on their way through the buffer can be told from the new ones. Asked seldom: a mutex, and one atomic
/// to see that there is nothing.
class RewindBoard {
 public:
  /// Train thread: a later request replaces one that was not taken yet. Returns the generation of the rows to
  /// come.
  std::uint32_t ask(RowCursors positions) {
    const std::lock_guard lock(mutex_);
    positions_ = std::move(positions);
    return generation_.fetch_add(1, std::memory_order_release) + 1;
  }
  /// Ingest thread: true when there is a request newer than `generation`, which is set to it.
  bool take(std::uint32_t& generation, RowCursors& positions) {
    if (generation_.load(std::memory_order_acquire) == generation) return false;
    const std::lock_guard lock(mutex_);
    generation = generation_.load(std::memory_order_relaxed);
    positions = positions_;
    return true;
  }

 private:
  std::mutex mutex_;
  RowCursors positions_;
  std::atomic<std::uint32_t> generation_{0};
};

}  // namespace rivulet::runtime
