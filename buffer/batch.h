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
  /// Adds a copy of a row that another device trains and announces: it is computed on here too, after the own
  /// rows, and counted nowhere. The next fill() drops copies.
  void add_copy(std::span<const float> features, std::span<const float> targets);

  [[nodiscard]] BatchView view() const noexcept;  ///< what to compute on: own rows, then copies
  [[nodiscard]] std::size_t rows() const noexcept { return own_ + copies_; }  ///< view().rows
  [[nodiscard]] std::size_t own_rows() const noexcept { return own_; }
  [[nodiscard]] std::size_t rows_max() const noexcept { return rows_max_; }
  /// Of the own rows, in the order they were read.
  [[nodiscard]] std::span<const RowTag> own_tags() const noexcept { return tags_; }

  void settle(RowBuffer& buffer);
  void put_back(RowBuffer& buffer);

 private:
  void clear() noexcept;

  std::span<float> features_;
  std::span<float> targets_;
  RowShape shape_;
  std::size_t rows_max_;
  std::size_t own_ = 0;     ///< rows in memory, the first ones
  std::size_t copies_ = 0;  ///< behind them; they have no tags
  std::vector<SlotIndex> slots_;
  std::vector<RowTag> tags_;
};

}  // namespace rivulet::buffer
