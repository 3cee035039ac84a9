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

/// What a device announces of one round: an interval per partition, and what of them was not trained.
struct Account {
  std::vector<RowInterval> intervals;  ///< none is empty; at most one per partition, ordered
  std::vector<SkippedRange> runs;      ///< of these intervals
};

/// Appends a run to a bounded list: it joins the one before it when they touch and share a fate. Above
/// `runs_max` the two oldest of one fate become one that is less exact about where its rows were; the counts
/// stay exact. One run of every fate of every partition stays in any case. Pure.
void add_run(std::vector<SkippedRange>& runs, const SkippedRange& run, std::size_t runs_max);

/// Appends what `later` accounts for, partition by partition. Errors: protocol (it does not begin where `to`
/// ends; names partition and offsets).
Status append(Account& to, const Account& later);

/// The rows of all intervals were dropped for a non-finite loss or gradient, those that were dropped before
/// aside. Pure.
void drop_trained(Account& account);

/// The part of the ledger that is not rows: where reading began, and what lay between the rows that reached
/// the buffer: dropped rows and offsets without one. Rows and runs of a partition form one chain of touching
/// stretches; whatever is announced to the group is a piece of that chain, so nothing can be left out.
/// Written by the ingest thread when something was passed over, read by the train thread once a round: a
/// mutex. Bounded: runs that touch and share a fate are one; at runs_max, has_room() asks the reader to wait.
class Ledger {
 public:
  static constexpr std::size_t runs_max = 65'536;
  static constexpr std::size_t announced_max = 256;  ///< runs in one Account

  /// A place of this partition that this process read from, or (train thread) that a state which is given up
  /// was read from. The lowest counts.
  void began(const PartitionId& partition, const RowCursor& at);
  /// Where every partition began.
  [[nodiscard]] Cursors begins() const;

  // --- ingest thread ---
  /// Before the row behind it is flushed. Runs of a partition in order.
  void passed(const SkippedRange& run);
  [[nodiscard]] bool has_room() const noexcept { return runs_.load(std::memory_order_relaxed) < runs_max; }
  /// The reader was sent elsewhere: runs known so far are worth nothing, and what is known of partitions that
  /// are not assigned any more.
  void restart(const Assignment& assignment);

  // --- train thread ---
  /// What `rows` and the runs before, between and behind them amount to, each partition from where it stands
  /// (`stands`; else from where reading began). Runs of another generation are left out. Errors: protocol (a
  /// row is not the next one of its partition; names it).
  Result<Account> account(std::span<const RowTag> rows, const Cursors& stands, std::uint32_t generation);
  /// Where the runs that begin at `at` end; `at` itself if none does.
  [[nodiscard]] RowCursor behind_runs(const PartitionId& partition, RowCursor at) const;
  /// `at` lies within a run.
  [[nodiscard]] bool splits(const PartitionId& partition, const RowCursor& at) const;
  /// What lies below is part of the agreed state.
  void settle(const Cursors& stands);

 private:
  struct Partition {
    std::optional<RowCursor> began;
    RowCursor sealed{-1, 0};  ///< end of what was announced last: no run grows over it
    std::deque<SkippedRange> runs;
  };
  static void extend(const Partition& partition, RowInterval& interval, std::vector<SkippedRange>& runs);

  mutable std::mutex mutex_;
  std::map<PartitionId, Partition> partitions_;
  std::uint32_t generation_ = 0;
  std::atomic<std::size_t> runs_{0};
};

}  // namespace rivulet::buffer
