#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/record.h"
#include "core/result.h"
#include "core/row.h"

namespace rivulet::buffer {

using SlotIndex = std::uint32_t;

/// Rows between the ingest thread and the train thread: a slab of `rows` slots and a spare, allocated once.
/// Two lock-free rings (boost::lockfree::spsc_queue) carry the indices of free and full slots, in batches.
/// Recently released slots are reused first, since they are still in the CPU cache. A row is written once (by
/// a decoder, into its slot) and copied once (into the batch). Wait-free on both sides. Memory: 4 * rows *
/// (columns + targets) bytes + tags.
class RowBuffer {
 public:
  /// Memory that a buffer of this size allocates: slab and rings. Pure.
  static std::size_t bytes_for(std::size_t rows, const RowShape& shape) noexcept;
  /// Errors: unavailable (out of memory; gives the size).
  static Result<std::unique_ptr<RowBuffer>> create(std::size_t rows, const RowShape& shape);
  /// For buffers that certainly fit in memory.
  RowBuffer(std::size_t rows, const RowShape& shape);
  ~RowBuffer();
  RowBuffer(const RowBuffer&) = delete;
  RowBuffer& operator=(const RowBuffer&) = delete;

  // --- ingest thread ---
  /// Rows that can be published now.
  [[nodiscard]] std::size_t free_rows() noexcept;
  /// The next slot to write. Returns the same slot until publish() is called. A full buffer returns the spare
  /// slot, so that a decoder can find the end of a record, or keep a row until there is room.
  RowSlot claim() noexcept;
  /// Completes the claimed row. The train thread sees it after the next flush(), in record order. Requires
  /// free_rows() > 0.
  void publish(const RowTag& tag) noexcept;
  /// Marks the newest published row as the last of its record: the cursor after it points to the next record.
  /// No effect once the row is flushed.
  void amend_newest(const RowCursor& next, std::uint32_t record_bytes = 0) noexcept;
  /// Makes published rows visible to the train thread. Call once per step, and before waiting.
  void flush() noexcept;

  // --- train thread ---
  /// Takes up to n of the oldest rows and appends their slots to `out`. The caller owns them until release()
  /// or put_back(). Rows of an earlier generation are released instead.
  std::size_t take(std::size_t n, std::vector<SlotIndex>& out);
  /// Releases the waiting rows that are `unwanted`; the others keep their order. Returns the number released.
  /// Visits every row.
  std::size_t discard(const std::function<bool(const RowTag&)>& unwanted);
  /// Discards rows of earlier generations, including those still in transit.
  void forget_before(std::uint32_t generation);
  /// Undoes take(): the rows become the oldest again, in the same order.
  void put_back(std::span<const SlotIndex> slots);
  /// Releases the slots of rows that were trained or dropped; they may be reused.
  void release(std::span<const SlotIndex> slots);
  [[nodiscard]] std::span<const float> features(SlotIndex) const noexcept;
  [[nodiscard]] std::span<const float> targets(SlotIndex) const noexcept;
  [[nodiscard]] const RowTag& tag(SlotIndex) const noexcept;

  // --- any thread ---
  /// Rows that can be taken now.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t capacity() const noexcept;
  /// Whether a quarter of the capacity (rounded up) is free: worth waking the ingest thread for.
  [[nodiscard]] bool is_worth_filling() const noexcept {
    return waiting() <= capacity() - (capacity() + 3) / 4;
  }
  [[nodiscard]] const RowShape& shape() const noexcept;

 private:
  struct State;
  explicit RowBuffer(std::unique_ptr<State> state);
  void gather_free() noexcept;
  std::size_t take_any(std::size_t n, std::vector<SlotIndex>& out);
  std::unique_ptr<State> state_;
  std::atomic<std::size_t> waiting_{0};
};

}  // namespace rivulet::buffer
