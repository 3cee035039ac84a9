#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/fields.h"

namespace rivulet {

/// One partition of the job: index of its topic in the job's sorted topic list, and the broker's number.
struct PartitionId {
  std::uint32_t topic = 0;
  std::int32_t partition = 0;
  auto operator<=>(const PartitionId&) const = default;
};
constexpr void fields(Either<PartitionId> auto& p, auto&& visit) {
  visit("topic", p.topic);
  visit("partition", p.partition);
}

/// Where reading stands in a partition: rows below {offset, row} are passed, this one is next.
/// Positions are per row because one record (Kafka message) may hold many rows (training samples).
struct RowCursor {
  std::int64_t offset = 0;
  std::uint32_t row = 0;
  auto operator<=>(const RowCursor&) const = default;
};
constexpr void fields(Either<RowCursor> auto& c, auto&& visit) {
  visit("offset", c.offset);
  visit("row", c.row);
}

/// The identity of one row for ever: {partition, offset, row}.
struct RowPosition {
  PartitionId partition;
  RowCursor at;
  auto operator<=>(const RowPosition&) const = default;
};

/// A record as the source hands it out. `value` is valid until the source's next poll().
struct Record {
  PartitionId partition;
  std::int64_t offset = 0;
  std::int64_t timestamp_ms = 0;  ///< producer's or broker's time, data not truth; 0 = unknown
  std::span<const std::byte> value;
  bool tombstone = false;  ///< the record has no value at all
};

/// Next offset to read of a partition.
struct NextOffset {
  PartitionId partition;
  std::int64_t offset = 0;
  bool operator==(const NextOffset&) const = default;
};

/// Why a row never reached the model. Every drop is counted under exactly one reason.
enum class DropReason : std::uint8_t {
  tombstone,        ///< record without a value
  oversize,         ///< record above decode.max_record_bytes
  malformed,        ///< bytes that are not the format
  missing_field,    ///< a configured field or column is absent
  wrong_shape,      ///< count of values differs from the configured shape
  wrong_type,       ///< a value that is not a number
  nonfinite_value,  ///< NaN or infinity in a feature or target
  bad_label,        ///< label negative, not an integer, or >= classes
  nonfinite_batch,  ///< finite rows gave a non-finite loss or gradient (train.on_nonfinite)
  truncated,        ///< more came than were trained (source.retention); not decoded: a record counts as one
  filtered,         ///< of another kind than decode.<format>.where chooses: nobody's fault
  context,          ///< a record that only later rows needed, such as the first ones of a window: no fault
  expired,          ///< what completes the row, such as a late label, did not come in time
};
inline constexpr std::size_t drop_reasons = 13;
/// It says nothing about the stream or the configuration.
constexpr bool is_harmless(DropReason reason) noexcept {
  return reason == DropReason::filtered || reason == DropReason::context;
}
/// Stable lower-case name, used as the metric label `reason`.
std::string_view name_of(DropReason reason) noexcept;
using DropCounts = std::array<std::uint64_t, drop_reasons>;

}  // namespace rivulet
