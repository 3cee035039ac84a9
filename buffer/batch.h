#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "buffer/row_buffer.h"
#include "core/result.h"
#include "core/row.h"

namespace rivulet::buffer {

/// One reused batch: rows taken from a RowBuffer, gathered into memory that the Device lent, kept with their
/// positions until the round is settled. Owner: the train thread.
///   fill(buffer, n) -> view() -> settle(buffer)   the round was applied: slots are free again
///                             -> put_back(buffer) the round failed: rows are the oldest again
class Batch {
 public:
  /// `features` [rows_max * columns] and `targets` [rows_max * targets] are lent for the life of the batch.
  Batch(std::span<float> features, std::span<float> targets, const RowShape& shape, std::size_t rows_max);
  /// Takes up to n more rows from the buffer (and copies them in). Returns how many were added.
  std::size_t fill(RowBuffer& buffer, std::size_t n);
  /// Adds a row owned by another device (moved here for this round). It is computed on, never announced here.
  /// A batch either lends rows or hosts received_rows in one round, never both (what it computes on lies
  /// together).
  void add_guest(std::span<const float> features, std::span<const float> targets, const RowTag& tag);
  /// Adds a copy of a row that another device trains and announces: it is computed on here too, after all
  /// others, and counted nowhere. The next fill() drops copies.
  void add_copy(std::span<const float> features, std::span<const float> targets);
  /// The last n own rows leave the computation of this round but stay owned here (moved to a peer): they are
  /// still announced by this device when the round succeeded, and come back on put_back().
  /// Returns a view of them, valid until settle/put_back.
  BatchView send_rows(std::size_t n);
  /// Undo of send_rows(): a transfer failed, the rows take part here again.
  void take_back_lent();

  [[nodiscard]] BatchView view() const noexcept;    ///< what to compute on: own + received - lent + copies
  [[nodiscard]] std::size_t rows() const noexcept;  ///< view().rows
  [[nodiscard]] std::size_t counted_rows() const noexcept { return rows() - copies_; }  ///< without copies
  [[nodiscard]] std::size_t own_rows() const noexcept;  ///< own rows held, lent ones included
  [[nodiscard]] std::size_t rows_max() const noexcept { return rows_max_; }
  /// Of the rows that this device owns here and announces, lent ones included, in the order they were read.
  /// Guests are their owner's to announce.
  [[nodiscard]] std::span<const RowTag> own_tags() const noexcept;

  void settle(RowBuffer& buffer);
  void put_back(RowBuffer& buffer);

 private:
  void clear() noexcept;
  void put(std::span<const float> features, std::span<const float> targets);

  std::span<float> features_;
  std::span<float> targets_;
  RowShape shape_;
  std::size_t rows_max_;
  std::size_t used_ = 0;    ///< rows in memory
  std::size_t own_ = 0;     ///< of which own (they come first)
  std::size_t lent_ = 0;    ///< of which lent out (the last own ones)
  std::size_t copies_ = 0;  ///< of used_, the last ones; they have no tags
  std::vector<SlotIndex> slots_;
  std::vector<RowTag> tags_;
};

}  // namespace rivulet::buffer
