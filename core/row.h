#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/record.h"

namespace rivulet {

/// Destination of a decoded row in the slab. features has shape [columns], targets [targets].
struct RowSlot {
  std::span<float> features;
  std::span<float> targets;
};

/// Shape of every row of a job. A feature row is flat, row-major; `shape` is the model's input, e.g. {1, 28,
/// 28}.
struct RowShape {
  std::vector<std::int64_t> shape;  ///< product = columns
  std::uint32_t targets = 1;        ///< number of values to predict per row; a class index counts as one
  [[nodiscard]] std::size_t columns() const noexcept {
    std::size_t n = 1;
    for (auto d : shape) n *= static_cast<std::size_t>(d);
    return n;
  }
  bool operator==(const RowShape&) const = default;
};

/// Metadata of a row in the buffer.
struct RowTag {
  RowPosition position;
  RowCursor next;                 ///< cursor after this row, the end of an interval that it closes
  std::int64_t timestamp_ms = 0;  ///< timestamp of the record
  std::uint32_t generation = 0;   ///< Assignment::generation under which this row was read
  std::uint32_t record_bytes =
      0;  ///< bytes of the record and of preceding ones without rows, if this is its last row; else 0
};

/// A batch in host memory, valid until its round ends. features [rows, columns], targets [rows, targets].
struct BatchView {
  std::span<const float> features;
  std::span<const float> targets;
  std::size_t rows = 0;
  std::span<const RowTag> tags;  ///< one per own row; injected rows follow these and have none
  /// Weight of a row in the gradient, by class. If empty, all weights are 1.
  std::span<const float> class_weights = {};
};

/// Rows of one partition used by one device in a round. Accounts for all offsets from `first` to `next`:
///   next.offset - first.offset = rows_trained + rows_dropped - non_final_rows + holes.
struct RowInterval {
  PartitionId partition;
  RowCursor first;
  RowCursor next;
  std::uint32_t rows_trained = 0;
  std::uint32_t rows_dropped = 0;    ///< dropped for any reason; the SkippedRanges give the reasons
  std::uint32_t non_final_rows = 0;  ///< dropped rows that do not end their record, so they do not advance
                                     ///< the offset
  std::uint64_t holes = 0;           ///< offsets without a row
  bool operator==(const RowInterval&) const = default;
  [[nodiscard]] bool empty() const noexcept { return rows_trained + rows_dropped + holes == 0; }
  /// Accepts arbitrary values, also those from a peer. Requires 0 <= first.offset <= next.offset.
  [[nodiscard]] bool adds_up() const noexcept {
    const auto passed = static_cast<std::uint64_t>(next.offset - first.offset);
    return holes <= passed && passed - holes == std::uint64_t{rows_trained} + rows_dropped - non_final_rows;
  }
};

constexpr void fields(Either<RowInterval> auto& i, auto&& visit) {
  visit("partition", i.partition);
  visit("first", i.first);
  visit("next", i.next);
  visit("rows_trained", i.rows_trained);
  visit("rows_dropped", i.rows_dropped);
  visit("non_final_rows", i.non_final_rows);
  visit("holes", i.holes);
}

/// SkippedRange::fate of offsets without a record. Not a DropReason.
inline constexpr std::uint32_t fate_hole = 0x100;

/// A range of a partition without trained rows: `rows` rows dropped for one reason, or `rows` offsets without
/// a record. Ranges merged to bound their number may also span other rows.
struct SkippedRange {
  PartitionId partition;
  RowCursor from;
  RowCursor to;
  std::uint64_t rows = 0;
  std::uint32_t fate = 0;  ///< a DropReason, or fate_hole
  bool operator==(const SkippedRange&) const = default;
  /// Returns the number of dropped rows that do not end their record.
  [[nodiscard]] std::uint64_t shared() const noexcept {
    return fate == fate_hole ? 0 : rows - static_cast<std::uint64_t>(to.offset - from.offset);
  }
};
constexpr void fields(Either<SkippedRange> auto& r, auto&& visit) {
  visit("partition", r.partition);
  visit("from", r.from);
  visit("to", r.to);
  visit("rows", r.rows);
  visit("fate", r.fate);
}

}  // namespace rivulet
