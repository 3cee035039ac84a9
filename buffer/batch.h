#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "buffer/row_buffer.h"
#include "core/result.h"
#include "core/row.h"

namespace rivulet::buffer {

/// One reused batch: rows taken from a RowBuffer and gathered into memory of the Device. Keeps their
/// positions until the round ends. Owner: the train thread.
///   fill(buffer, n) -> view() -> release(buffer)  the round was applied: the slots are released
///                             -> put_back(buffer) the round failed: the rows become the oldest again
class Batch {
 public:
  /// `features` [rows_max * columns] and `targets` [rows_max * targets] must outlive the batch.
  Batch(std::span<float> features, std::span<float> targets, const RowShape& shape, std::size_t rows_max);
  /// Takes up to n more rows from the buffer and copies them. Returns the number of rows added.
  std::size_t fill(RowBuffer& buffer, std::size_t n);
  /// Adds an injected row after the device's own rows. This device computes on it, but only its owner
  /// announces and counts it. The next fill() discards injected rows.
  void add_injected(std::span<const float> features, std::span<const float> targets);

  [[nodiscard]] BatchView view() const noexcept;  ///< the rows to compute on: own rows, then injected rows
  [[nodiscard]] std::size_t rows() const noexcept { return own_ + injected_; }  ///< view().rows
  [[nodiscard]] std::size_t own_rows() const noexcept { return own_; }
  [[nodiscard]] std::size_t rows_max() const noexcept { return rows_max_; }
  /// Tags of the device's own rows, in reading order.
  [[nodiscard]] std::span<const RowTag> own_tags() const noexcept { return tags_; }

  void release(RowBuffer& buffer);
  void put_back(RowBuffer& buffer);

 private:
  void clear() noexcept;

  std::span<float> features_;
  std::span<float> targets_;
  RowShape shape_;
  std::size_t rows_max_;
  std::size_t own_ = 0;       ///< own rows, first in memory
  std::size_t injected_ = 0;  ///< injected rows, after the own rows; they have no tags
  std::vector<SlotIndex> slots_;
  std::vector<RowTag> tags_;
};

}  // namespace rivulet::buffer
