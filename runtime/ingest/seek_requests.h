#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include "buffer/ledger.h"

namespace rivulet::runtime {

/// The train thread asks the ingest thread to read again from other positions: the group has adopted a state
/// in which this device's rows stand elsewhere. Rows carry the generation they were read in, so that those
/// still on their way through the buffer can be distinguished from the new ones. Asked seldom: a mutex, and
/// one atomic to see that there is nothing.
class SeekRequests {
 public:
  /// Train thread: a later request replaces one that was not taken yet. Returns the generation of the rows to
  /// come.
  std::uint32_t ask(buffer::Cursors positions) {
    const std::lock_guard lock(mutex_);
    positions_ = std::move(positions);
    return generation_.fetch_add(1, std::memory_order_release) + 1;
  }
  /// Ingest thread: true when there is a request newer than `generation`, which is set to it.
  bool take(std::uint32_t& generation, buffer::Cursors& positions) {
    if (generation_.load(std::memory_order_acquire) == generation) return false;
    const std::lock_guard lock(mutex_);
    generation = generation_.load(std::memory_order_relaxed);
    positions = positions_;
    return true;
  }

 private:
  std::mutex mutex_;
  buffer::Cursors positions_;
  std::atomic<std::uint32_t> generation_{0};
};

}  // namespace rivulet::runtime
