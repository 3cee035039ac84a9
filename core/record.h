#pragma once
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/fields.h"

namespace rivulet {

/// One partition of the job: index of its topic in the job's sorted topic list, and its number in Kafka.
struct PartitionId {
  std::uint32_t topic = 0;
  std::int32_t partition = 0;
  auto operator<=>(const PartitionId&) const = default;
};
constexpr void fields(Either<PartitionId> auto& p, auto&& visit) {
  visit("topic", p.topic);
  visit("partition", p.partition);
}

/// The next position to read in a partition: rows below {offset, row} have been processed. Positions count
/// rows because one record (Kafka message) may hold many rows (training samples).
struct RowCursor {
  std::int64_t offset = 0;
  std::uint32_t row = 0;
  auto operator<=>(const RowCursor&) const = default;
};
constexpr void fields(Either<RowCursor> auto& c, auto&& visit) {
  visit("offset", c.offset);
  visit("row", c.row);
}

/// The permanent identity of one row: {partition, offset, row}.
struct RowPosition {
  PartitionId partition;
  RowCursor at;
  auto operator<=>(const RowPosition&) const = default;
};

/// A record as returned by the source. `value` is valid until the source's next poll().
struct Record {
  PartitionId partition;
  std::int64_t offset = 0;
  std::int64_t timestamp_ms = 0;  ///< set by producer or broker, informational only; 0 = unknown
  std::span<const std::byte> value;
  bool tombstone = false;  ///< the record has no value
};

/// Next offset to read from a partition.
struct NextOffset {
  PartitionId partition;
  std::int64_t offset = 0;
  bool operator==(const NextOffset&) const = default;
};

/// Why a row was never trained. Every drop is counted under exactly one reason.
enum class DropReason : std::uint8_t {
  tombstone,        ///< record without a value
  oversize,         ///< record above decode.max_record_bytes
  malformed,        ///< value is not valid in the configured format
  missing_field,    ///< a configured field or column is absent
  wrong_shape,      ///< number of values differs from the configured shape
  wrong_type,       ///< a value that is not a number
  nonfinite_value,  ///< NaN or infinity in a feature or target
  bad_label,        ///< label negative, not an integer, or >= classes
  nonfinite_batch,  ///< finite rows gave a non-finite loss or gradient (train.on_nonfinite)
  truncated,        ///< more rows arrived than were trained (source.retention); counts records, which are not
                    ///< decoded
  filtered,         ///< rejected by decode.<format>.where; expected
  context,          ///< record needed only by later rows, such as the first ones of a window; expected
  expired,          ///< the data that completes the row, such as a late label, did not arrive in time
};
inline constexpr std::size_t drop_reasons = 13;
/// Drops for these reasons are expected and do not indicate a fault of the stream or the configuration.
constexpr bool is_harmless(DropReason reason) noexcept {
  return reason == DropReason::filtered || reason == DropReason::context;
}
/// Stable lower-case name, used as the metric label `reason`.
std::string_view name_of(DropReason reason) noexcept;
using DropCounts = std::array<std::uint64_t, drop_reasons>;

}  // namespace rivulet
