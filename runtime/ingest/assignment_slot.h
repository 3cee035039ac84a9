#pragma once
#include <atomic>
#include <mutex>
#include <utility>

#include "core/assignment.h"

namespace rivulet::runtime {

/// Passes the assignment from the train thread to the ingest thread: at the start, after a state with
/// different next offsets was adopted, and when a view assigns different partitions. A new assignment
/// replaces one that the ingest thread has not read. Writes are rare, so a mutex suffices; an atomic counter
/// makes polling cheap.
class AssignmentSlot {
 public:
  /// Train thread. Returns the generation of the rows that follow.
  std::uint32_t publish(decltype(Assignment::cursors) cursors) {
    const std::lock_guard lock(mutex_);
    newest_ = {published_.load(std::memory_order_relaxed), std::move(cursors)};
    return published_.fetch_add(1, std::memory_order_release);
  }
  /// Ingest thread. Copies an unread assignment to `assignment` and returns true.
  bool take(Assignment& assignment) {
    if (published_.load(std::memory_order_acquire) == taken_) return false;
    const std::lock_guard lock(mutex_);
    taken_ = published_.load(std::memory_order_relaxed);
    assignment = newest_;
    return true;
  }

 private:
  std::mutex mutex_;
  Assignment newest_;
  std::atomic<std::uint32_t> published_{0};  ///< number of assignments
  std::uint32_t taken_ = 0;                  ///< ingest thread
};

}  // namespace rivulet::runtime
