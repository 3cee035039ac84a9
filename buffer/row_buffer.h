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

/// Rows between the ingest and the train thread: a slab of `rows` slots and a spare one allocated once, and
/// two lock-free rings (boost::lockfree::spsc_queue) of slot numbers, free ones and full ones, moved in
/// batches. Slots that became free last are written first, so that they are still in the processor's cache. A
/// row is written once (by a decoder, into its slot) and copied once (into the batch). Wait-free on both
/// sides. Memory: rows * (columns + targets) * 4 bytes + tags.
class RowBuffer {
 public:
  /// What a buffer of this size allocates, slab and rings. Pure.
  static std::size_t bytes_for(std::size_t rows, const RowShape& shape) noexcept;
  /// Errors: unavailable (memory; names how much).
  static Result<std::unique_ptr<RowBuffer>> create(std::size_t rows, const RowShape& shape);
  /// For buffers that are known to fit.
  RowBuffer(std::size_t rows, const RowShape& shape);
  ~RowBuffer();
  RowBuffer(const RowBuffer&) = delete;
  RowBuffer& operator=(const RowBuffer&) = delete;

  // --- ingest thread ---
  /// Rows that can be published now.
  [[nodiscard]] std::size_t free_rows() noexcept;
  /// The next slot to write. Calling it again without publish() hands out the same slot. There is always one:
  /// in a full buffer the spare slot, so that a decoder can find the end of a record, or keep a row until
  /// there is room.
  RowSlot claim() noexcept;
  /// The claimed row is complete; it becomes visible to the train thread at the next flush(). In record
  /// order. Needs free_rows() > 0.
  void publish(const RowTag& tag) noexcept;
  /// The newest published row was its record's last: the cursor after it is the next record. No effect on a
  /// row that was flushed already.
  void amend_newest(const RowCursor& next, std::uint32_t record_bytes = 0) noexcept;
  /// Hands published rows over. Call once per step, and before waiting.
  void flush() noexcept;

  // --- train thread ---
  /// Up to n oldest rows; appends their slots to `out`. They stay owned by the caller until release() or
  /// put_back(). Rows of a generation that is forgotten are released instead.
  std::size_t take(std::size_t n, std::vector<SlotIndex>& out);
  /// Releases the waiting rows that are `unwanted`; the others keep their order. Returns how many. Looks at
  /// every row.
  std::size_t discard(const std::function<bool(const RowTag&)>& unwanted);
  /// Rows read before this generation are worth nothing, those still on their way included.
  void forget_before(std::uint32_t generation);
  /// Undo of take(): the rows become the oldest again, in the same order.
  void put_back(std::span<const SlotIndex> slots);
  /// The rows are trained or dropped for good; their slots may be reused.
  void release(std::span<const SlotIndex> slots);
  [[nodiscard]] std::span<const float> features(SlotIndex) const noexcept;
  [[nodiscard]] std::span<const float> targets(SlotIndex) const noexcept;
  [[nodiscard]] const RowTag& tag(SlotIndex) const noexcept;

  // --- any thread ---
  /// Rows ready to be taken.
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t capacity() const noexcept;
  /// A quarter is free, or what is left of a smaller one: worth waking the ingest thread for.
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
