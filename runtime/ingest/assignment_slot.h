#pragma once
#include <atomic>
#include <mutex>
#include <utility>

#include "core/assignment.h"

namespace rivulet::runtime {

/// The train thread tells the ingest thread what to read: at the start, and when the group has adopted a
/// state in which this device's rows stand elsewhere, or the view gives it other partitions. One place: the
/// newest assignment replaces one that was not taken. Seldom written: a mutex, and one atomic to see that
/// there is nothing.
class AssignmentSlot {
 public:
  /// Train thread. Returns the generation of the rows to come.
  std::uint32_t publish(decltype(Assignment::cursors) cursors) {
    const std::lock_guard lock(mutex_);
    newest_ = {published_.load(std::memory_order_relaxed), std::move(cursors)};
    return published_.fetch_add(1, std::memory_order_release);
  }
  /// Ingest thread: true when there is one that was not taken, which `assignment` becomes.
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
  std::atomic<std::uint32_t> published_{0};  ///< how many
  std::uint32_t taken_ = 0;                  ///< ingest thread
};

}  // namespace rivulet::runtime
