#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/record.h"

namespace rivulet {

/// What a decoder fills: one row of the slab. features has shape [columns], targets [targets].
struct RowSlot {
  std::span<float> features;
  std::span<float> targets;
};

/// Shape of every row of a job. A feature row is flat, row-major; `shape` is what a model sees, e.g. {1, 28,
/// 28}.
struct RowShape {
  std::vector<std::int64_t> shape;  ///< product = columns
  std::uint32_t targets = 1;        ///< numbers per row to predict; a class index counts as one
  [[nodiscard]] std::size_t columns() const noexcept {
    std::size_t n = 1;
    for (auto d : shape) n *= static_cast<std::size_t>(d);
    return n;
  }
  bool operator==(const RowShape&) const = default;
};

/// What travels beside a row through the buffer.
struct RowTag {
  RowPosition position;
  RowCursor next;                 ///< cursor after this row, so an interval can be closed exactly
  std::int64_t timestamp_ms = 0;  ///< of its record
  std::uint32_t generation = 0;   ///< how often the reader had been sent elsewhere when it read this row
  std::uint32_t record_bytes =
      0;  ///< of the record that it ends, and of those before that ended with none; else 0
};

/// A batch in host memory, valid until its round ended. features [rows, columns], targets [rows, targets].
struct BatchView {
  std::span<const float> features;
  std::span<const float> targets;
  std::size_t rows = 0;
  std::span<const RowTag> tags;  ///< [rows], less those that are only copies of others' rows, the last ones
  /// What a row of each class weighs in the gradient; empty: all weigh 1.
  std::span<const float> class_weights = {};
};

/// Rows of one partition used by one device in one round: all between `first` and `next` are accounted for,
///   next.offset - first.offset = rows_trained + rows_dropped - non_final_rows + holes.
struct RowInterval {
  PartitionId partition;
  RowCursor first;
  RowCursor next;
  std::uint32_t rows_trained = 0;
  std::uint32_t rows_dropped = 0;    ///< for any reason; SkippedRanges have which
  std::uint32_t non_final_rows = 0;  ///< of both: not the last of their record, they move no offset
  std::uint64_t holes = 0;           ///< offsets that hold no row
  bool operator==(const RowInterval&) const = default;
  [[nodiscard]] bool empty() const noexcept { return rows_trained + rows_dropped + holes == 0; }
  /// Of any numbers, a peer's too; `next` not before `first`, and that not before 0.
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

/// What a DropReason is not: there was nothing.
inline constexpr std::uint32_t fate_hole = 0x100;

/// A stretch of a partition that nothing was trained of: `rows` rows dropped for one reason, or `rows`
/// offsets without a row. Where many were joined to stay bounded, other rows may lie between its ends, too.
struct SkippedRange {
  PartitionId partition;
  RowCursor from;
  RowCursor to;
  std::uint64_t rows = 0;
  std::uint32_t fate = 0;  ///< a DropReason, or fate_hole
  bool operator==(const SkippedRange&) const = default;
  /// Rows of it that are not the last of their record.
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
