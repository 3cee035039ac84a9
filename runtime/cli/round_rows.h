#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/row.h"
#include "runtime/state/partition_progress.h"

namespace rivulet::runtime::cli {

/// Rows of one partition that one applied round used.
struct RoundRows {
  std::uint64_t view = 0;
  std::uint64_t step = 0;  ///< the round that made this step of the agreed state
  RowInterval rows;
};

/// Which rows were trained in which round, of all partitions, in the history that ends with `step`: read from
/// the decision logs of a device (decisions.jsonl and the files before it). Rounds that a later view replaced
/// are left out; so are those that this device did not take part in. Errors: io, bad_record (names the line).
Result<std::vector<RoundRows>> rounds_in(const std::string& data_dir, std::uint64_t step);

/// Offsets of a partition that its ledger holds and none of `rounds` used. Pure.
struct Stretch {
  RowCursor from;
  RowCursor to;
};
std::vector<Stretch> without_round(const PartitionId& partition, const PartitionProgress& books,
                                   const std::vector<RoundRows>& rounds);

}  // namespace rivulet::runtime::cli
