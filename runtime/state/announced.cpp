#include "runtime/state/announced.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <ranges>
#include <set>

#include "runtime/process/topic_name.h"

namespace rivulet::runtime {
namespace {

/// True if the skipped ranges of an interval lie within it and contain exactly its drops and holes.
bool is_explained(const RowInterval& interval, std::span<const SkippedRange> runs) {
  const auto own = [&](const SkippedRange& run) { return run.partition == interval.partition; };
  const auto passed = passed_between(interval.first, interval.next, runs | std::views::filter(own));
  if (!passed || passed->holes != interval.holes) return false;
  return std::accumulate(passed->dropped.begin(), passed->dropped.end(), std::uint64_t{0}) ==
         interval.rows_dropped;
}

/// Returns why an interval is invalid; null if it is valid. `seen`: the partitions announced in this round so
/// far.
const char* trouble_with(const RowInterval& rows, const AgreedState& state, std::set<PartitionId>& seen) {
  const auto known = state.partitions.find(rows.partition);
  const bool fresh = known == state.partitions.end();
  if (rows.first.offset < 0) return "begin at a negative offset";  // no image of it can be loaded
  if (rows.next < rows.first) return "end before they begin";
  if (!rows.adds_up()) return "do not account for every offset in the interval";
  if (!fresh && rows.first < known->second.next) return "are already part of the state";
  if (!fresh && rows.first != known->second.next) return "leave a gap after the rows of the state";
  if (!seen.insert(rows.partition).second) return "are announced twice";
  if (fresh && seen.size() + state.partitions.size() > partitions_max)
    return "exceed the maximum number of partitions of a job";
  return nullptr;
}

/// The rank that announces each partition. `fine`: whether the table is valid for a device that owns no
/// partition.
struct Announcers {
  bool fine = false;
  std::vector<std::pair<PartitionId, std::uint32_t>> ranks;  ///< ranks ordered by partition
  bool operator==(const Announcers&) const = default;
};

Announcers announcers_of(const sync::FactsTable& table) {
  Announcers found{.fine = true};
  for (std::uint32_t rank = 0; rank < table.size(); ++rank) {
    const Announced announced(table, rank);
    for (const RowInterval& rows : announced.intervals()) found.ranks.emplace_back(rows.partition, rank);
  }
  std::ranges::sort(found.ranks);
  return found;
}

}  // namespace

buffer::Account Announced::account() const {
  buffer::Account account{{}, {runs_.begin(), runs_.end()}};
  std::ranges::copy(intervals(), std::back_inserter(account.intervals));
  return account;
}

Status check_announced(const sync::FactsTable& table, const sync::ViewSpec& view, const AgreedState& state,
                       std::span<const PartitionId> own, std::span<const std::string> topics) {
  std::set<PartitionId> seen;
  for (std::uint32_t rank = 0; rank < table.size(); ++rank) {
    const Announced announced(table, rank);
    for (const RowInterval& rows : announced.intervals()) {
      const char* trouble = trouble_with(rows, state, seen);
      if (trouble == nullptr && rank != view.rank && std::ranges::binary_search(own, rows.partition))
        trouble = "belong to this device";
      if (trouble == nullptr && !is_explained(rows, announced.runs()))
        trouble = "do not match the announced skipped ranges";
      if (trouble == nullptr) continue;
      return Error{ErrorCode::protocol,
                   view.members[rank] + " announces rows of partition " + text_of(rows.partition, topics) +
                       " that " + trouble,
                   {rank}};
    }
  }
  return ok();
}

Status check_announced(const sync::Round& round, const sync::ViewSpec& view, const StateHandle& state,
                       std::span<const PartitionId> own, std::span<const std::string> topics) {
  if (!state.is_shared()) return check_announced(round.table, view, *state, own, topics);
  const auto found = state.derive<Announcers>(round.work, [&] {
    const bool fine = bool(check_announced(round.table, view, *state, {}, topics));
    return std::make_shared<const Announcers>(fine ? announcers_of(round.table) : Announcers{});
  });
  const bool fine = found->fine && std::ranges::all_of(own, [&](const PartitionId& id) {
                      const auto at = std::ranges::lower_bound(found->ranks, std::pair(id, std::uint32_t{0}));
                      return at == found->ranks.end() || at->first != id || at->second == view.rank;
                    });
  // Checks again for an error message from this device's point of view.
  return fine ? ok() : check_announced(round.table, view, *state, own, topics);
}

bool only_offsets_move(const sync::FactsTable& table) {
  bool moves = false;
  for (std::size_t rank = 0; rank < table.size(); ++rank) {
    const Announced announced(table, rank);
    for (const RowInterval& interval : announced.intervals()) {
      if (interval.rows_trained > 0) return false;
      moves = true;
    }
  }
  return moves;
}

}  // namespace rivulet::runtime
