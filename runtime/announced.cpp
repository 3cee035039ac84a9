#include "runtime/announced.h"

#include <set>

namespace rivulet::runtime {
namespace {

constexpr std::size_t partitions_max = 65'536;  // of a job

/// The runs of an interval say what it counts, and lie within it.
bool explain(std::span<const PassedRun> runs, const RowInterval& interval) {
  std::uint64_t dropped = 0;
  std::uint64_t holes = 0;
  for (const PassedRun& run : runs) {
    if (run.partition != interval.partition) continue;
    if (run.from < interval.first || interval.next < run.to || run.to < run.from) return false;
    if (run.fate != fate_hole && run.fate >= drop_reasons) return false;
    (run.fate == fate_hole ? holes : dropped) += run.rows;
  }
  return dropped == interval.rows_dropped && holes == interval.holes;
}

/// Why an interval cannot be; null if it can. `seen`: partitions of this round so far.
const char* trouble_with(const RowInterval& rows, const AgreedState& state, std::set<PartitionId>& seen) {
  const auto known = state.partitions.find(rows.partition);
  const bool fresh = known == state.partitions.end();
  if (rows.next < rows.first) return "end before they begin";
  if (!rows.adds_up()) return "do not add up to the offsets";
  if (!fresh && rows.first < known->second.next) return "are part of the state already";
  if (!fresh && rows.first != known->second.next) return "leave out rows before them";
  if (!seen.insert(rows.partition).second) return "are announced twice";
  if (fresh && seen.size() + state.partitions.size() > partitions_max)
    return "are of more partitions than a job may have";
  return nullptr;
}

}  // namespace

buffer::Account Announced::account() const {
  buffer::Account account{{}, {runs_.begin(), runs_.end()}};
  for_each_interval([&](const RowInterval& interval) { account.intervals.push_back(interval); });
  return account;
}

Status check_announced(const sync::FactsTable& table, const sync::ViewSpec& view, const AgreedState& state,
                       const CommitBoard& own) {
  std::set<PartitionId> seen;
  Status fits = ok();
  for (std::uint32_t rank = 0; rank < table.size() && fits; ++rank) {
    const Announced announced(table, rank);
    announced.for_each_interval([&](const RowInterval& rows) {
      if (!fits) return;
      const char* trouble = trouble_with(rows, state, seen);
      if (trouble == nullptr && rank != view.rank && own.owns(rows.partition))
        trouble = "belong to this device";
      if (trouble == nullptr && !explain(announced.runs(), rows))
        trouble = "its drops and holes do not explain";
      if (trouble == nullptr) return;
      fits = Error{ErrorCode::protocol, view.members[rank] + " announces rows of partition " +
                                            std::to_string(rows.partition.partition) + " that " + trouble};
    });
  }
  return fits;
}

bool only_offsets_move(const sync::FactsTable& table) {
  bool moves = false;
  bool trained = false;
  for (std::size_t rank = 0; rank < table.size(); ++rank) {
    trained = trained || table.facts[rank].rows_since_sync > 0;
    Announced(table, rank).for_each_interval([&](const RowInterval& interval) {
      trained = trained || interval.rows_trained > 0;
      moves = true;
    });
  }
  return moves && !trained;
}

}  // namespace rivulet::runtime
