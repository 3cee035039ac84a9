#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/assignment.h"
#include "core/record.h"
#include "core/result.h"
#include "core/row.h"

namespace rivulet::buffer {

using Cursors = std::map<PartitionId, RowCursor>;

/// A device's announcement for one round: one interval per partition, and their skipped ranges.
struct Account {
  std::vector<RowInterval> intervals;  ///< not empty, ordered, one per partition
  std::vector<SkippedRange> runs;      ///< skipped ranges of these intervals
};

/// Appends a skipped range to a bounded list. It is joined to the last range if both touch and have the same
/// fate. Above `runs_max`, the two oldest ranges with the same partition and fate are merged: bounds become
/// inexact, counts stay exact. Every partition and fate keeps at least one range. Pure.
void add_run(std::vector<SkippedRange>& runs, const SkippedRange& run, std::size_t runs_max);

/// Appends the intervals of `later`, partition by partition. Errors: protocol (an interval does not begin
/// where the one in `to` ends; names partition and offsets).
Status append(Account& to, const Account& later);

/// Marks the trained rows of all intervals as dropped for a non-finite loss or gradient. Pure.
void drop_trained(Account& account);

/// The part of the ledger outside the row buffer: where reading began, and the skipped ranges between the
/// rows in the buffer (dropped rows and offsets without a record). Rows and skipped ranges of a partition
/// form one contiguous chain. A device announces pieces of that chain, so nothing can be omitted. The ingest
/// thread writes it for each skipped range, the train thread reads it once per round, under a mutex. Bounded:
/// touching ranges with the same fate are joined; at runs_max, has_room() makes the reader pause.
class Ledger {
 public:
  static constexpr std::size_t runs_max = 65'536;
  static constexpr std::size_t announced_max = 256;  ///< skipped ranges in one Account

  /// Records a position from which this process read the partition, or (train thread) from which an abandoned
  /// state was read. Keeps the lowest position.
  void began(const PartitionId& partition, const RowCursor& at);
  /// Where reading of each partition began.
  [[nodiscard]] Cursors begins() const;

  // --- ingest thread ---
  /// Adds a skipped range, before the row that follows it is flushed. Ranges of a partition must be in order.
  void passed(const SkippedRange& run);
  [[nodiscard]] bool has_room() const noexcept { return runs_.load(std::memory_order_relaxed) < runs_max; }
  /// The reader was repositioned: discards all skipped ranges, and the partitions that are no longer
  /// assigned.
  void restart(const Assignment& assignment);

  // --- train thread ---
  /// Accounts for `rows` and the skipped ranges before, between and after them. Each partition begins at its
  /// offset in `stands`, or else where reading began. Ignores skipped ranges of other generations. Errors:
  /// protocol (a row is not the next row of its partition; names the row).
  Result<Account> account(std::span<const RowTag> rows, const Cursors& stands, std::uint32_t generation);
  /// Returns the end of the contiguous skipped ranges that begin at `at`; `at` itself if there are none.
  [[nodiscard]] RowCursor behind_runs(const PartitionId& partition, RowCursor at) const;
  /// Whether `at` lies inside a skipped range.
  [[nodiscard]] bool splits(const PartitionId& partition, const RowCursor& at) const;
  /// Prunes the skipped ranges below `stands`, which are part of the agreed state.
  void prune(const Cursors& stands);

 private:
  struct Partition {
    std::optional<RowCursor> began;
    RowCursor sealed{-1, 0};  ///< end of the last announcement; no skipped range extends across it
    std::deque<SkippedRange> runs;
  };
  static void extend(const Partition& partition, RowInterval& interval, std::vector<SkippedRange>& runs);

  mutable std::mutex mutex_;
  std::map<PartitionId, Partition> partitions_;
  std::uint32_t generation_ = 0;
  std::atomic<std::size_t> runs_{0};
};

}  // namespace rivulet::buffer
