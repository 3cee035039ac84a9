#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/row.h"
#include "runtime/state/partition_progress.h"

namespace rivulet::runtime::cli {

/// Rows of one partition used by one applied round.
struct RoundRows {
  std::uint64_t view = 0;
  std::uint64_t step = 0;  ///< step of the agreed state that the round made
  RowInterval rows;
};

/// Reads from a device's decision logs (decisions.jsonl and rotated files) which rows each round up to `step`
/// trained, for all partitions. Omits rounds that a later view replaced, rounds without this device, and the
/// last round before it missed views, which they may have replaced. Errors: io, bad_record (names the line).
Result<std::vector<RoundRows>> rounds_in(const std::string& data_dir, std::uint64_t step);

/// Range of offsets of a partition that is in its ledger but in none of `rounds`.
struct Stretch {
  RowCursor from;
  RowCursor to;
};
std::vector<Stretch> without_round(const PartitionId& partition, const PartitionProgress& books,
                                   const std::vector<RoundRows>& rounds);

}  // namespace rivulet::runtime::cli
