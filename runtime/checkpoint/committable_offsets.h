#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "core/check.h"
#include "core/record.h"

namespace rivulet::runtime {

/// The one arrow that goes back: which offsets of this device's partitions the agreed state covers.
/// Written by the train thread, read by the ingest thread.
class CommittableOffsets {
 public:
  explicit CommittableOffsets(std::span<const PartitionId> partitions)
      : partitions_(partitions.begin(), partitions.end()), slots_(partitions.size()) {
    std::ranges::sort(partitions_);
    for (std::size_t i = 0; i < partitions.size(); ++i) slots_[i].partition = partitions[i];
  }
  /// Train thread: everything below `next` of this partition is part of the agreed state. Other devices' are
  /// ignored.
  void covered(const PartitionId& partition, const RowCursor& next) noexcept {
    for (auto& slot : slots_)
      if (slot.partition == partition) slot.offset.store(next.offset, std::memory_order_release);
  }
  /// Is this a partition of this device? Constant.
  [[nodiscard]] bool owns(const PartitionId& partition) const noexcept {
    return std::any_of(slots_.begin(), slots_.end(), [&](const Slot& s) { return s.partition == partition; });
  }
  /// Of this device, ordered. Constant.
  [[nodiscard]] std::span<const PartitionId> partitions() const noexcept { return partitions_; }
  /// Ingest thread: positions that moved since the last call.
  void take_news(std::vector<NextOffset>& out) {
    out.clear();
    for (auto& slot : slots_) {
      const std::int64_t offset = slot.offset.load(std::memory_order_acquire);
      if (offset == slot.told) continue;
      slot.told = offset;
      out.push_back({slot.partition, offset});
    }
  }

 private:
  struct Slot {
    PartitionId partition;
    std::atomic<std::int64_t> offset{-1};
    std::int64_t told = -1;  // ingest thread
    Slot() = default;
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
  };
  std::vector<PartitionId> partitions_;
  std::vector<Slot> slots_;
};

}  // namespace rivulet::runtime
