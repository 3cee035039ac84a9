#include "buffer/ledger.h"

#include <algorithm>
#include <string>

#include "core/check.h"

namespace rivulet::buffer {
namespace {

std::string text_of_cursor(const RowCursor& at) {
  return std::to_string(at.offset) + (at.row == 0 ? "" : "." + std::to_string(at.row));
}

Error gap(const PartitionId& partition, const RowCursor& expected, const RowCursor& got) {
  return {ErrorCode::protocol, "partition " + std::to_string(partition.partition) +
                                   ": expected the next row at " + text_of_cursor(expected) +
                                   ", got one at " + text_of_cursor(got)};
}

bool touch(const SkippedRange& a, const SkippedRange& b) {
  return a.partition == b.partition && a.fate == b.fate && a.to == b.from;
}

/// Merges the two oldest skipped ranges that share a partition and a fate.
void loosen(std::vector<SkippedRange>& runs) {
  for (auto old = runs.begin(); old != runs.end(); ++old) {
    const auto next = std::find_if(old + 1, runs.end(), [&](const SkippedRange& r) {
      return r.partition == old->partition && r.fate == old->fate;
    });
    if (next == runs.end()) continue;
    old->from = std::min(old->from, next->from);
    old->to = std::max(old->to, next->to);
    old->rows += next->rows;
    runs.erase(next);
    return;
  }
}

const SkippedRange* run_at(const std::deque<SkippedRange>& runs, const RowCursor& at) {
  const auto it = std::ranges::lower_bound(runs, at, {}, &SkippedRange::from);
  return it != runs.end() && it->from == at ? &*it : nullptr;
}

void add_row(RowInterval& interval, const RowTag& tag) {
  interval.rows_trained += 1;
  interval.non_final_rows += tag.next.offset == tag.position.at.offset ? 1 : 0;
  interval.next = tag.next;
}

}  // namespace

void add_run(std::vector<SkippedRange>& runs, const SkippedRange& run, std::size_t runs_max) {
  if (!runs.empty() && touch(runs.back(), run)) {
    runs.back().to = run.to;
    runs.back().rows += run.rows;
    return;
  }
  runs.push_back(run);
  if (runs.size() > runs_max) loosen(runs);
}

Status append(Account& to, const Account& later) {
  for (const RowInterval& more : later.intervals) {
    const auto have = std::ranges::find(to.intervals, more.partition, &RowInterval::partition);
    if (have == to.intervals.end()) {
      to.intervals.push_back(more);
      continue;
    }
    if (have->next != more.first) return gap(more.partition, have->next, more.first);
    have->next = more.next;
    have->rows_trained += more.rows_trained;
    have->rows_dropped += more.rows_dropped;
    have->non_final_rows += more.non_final_rows;
    have->holes += more.holes;
  }
  std::ranges::sort(to.intervals, {}, &RowInterval::partition);
  for (const SkippedRange& run : later.runs) add_run(to.runs, run, Ledger::announced_max);
  return ok();
}

void drop_trained(Account& account) {
  for (RowInterval& interval : account.intervals) {
    if (interval.rows_trained == 0) continue;
    add_run(account.runs,
            {interval.partition, interval.first, interval.next, interval.rows_trained,
             static_cast<std::uint32_t>(DropReason::nonfinite_batch)},
            Ledger::announced_max);
    interval.rows_dropped += interval.rows_trained;
    interval.rows_trained = 0;
  }
}

void Ledger::began(const PartitionId& partition, const RowCursor& at) {
  const std::lock_guard lock(mutex_);
  auto& began = partitions_[partition].began;
  if (!began || at < *began) began = at;
}

Cursors Ledger::begins() const {
  const std::lock_guard lock(mutex_);
  Cursors all;
  for (const auto& [id, partition] : partitions_)
    if (partition.began) all.emplace(id, *partition.began);
  return all;
}

void Ledger::passed(const SkippedRange& run) {
  const std::lock_guard lock(mutex_);
  Partition& partition = partitions_[run.partition];
  auto& runs = partition.runs;
  RIVULET_CHECK(runs.empty() || !(run.from < runs.back().to),
                "skipped ranges of a partition must be in order");
  if (!runs.empty() && touch(runs.back(), run) && runs.back().to != partition.sealed) {
    runs.back().to = run.to;
    runs.back().rows += run.rows;
    return;
  }
  runs.push_back(run);
  runs_.fetch_add(1, std::memory_order_relaxed);
}

void Ledger::restart(const Assignment& assignment) {
  const std::lock_guard lock(mutex_);
  std::erase_if(partitions_, [&](const auto& one) { return !assignment.cursors.contains(one.first); });
  for (auto& [id, partition] : partitions_) partition.runs.clear();
  runs_.store(0, std::memory_order_relaxed);
  generation_ = assignment.generation;
}

void Ledger::extend(const Partition& partition, RowInterval& interval, std::vector<SkippedRange>& runs) {
  while (const SkippedRange* run = run_at(partition.runs, interval.next)) {
    if (run->fate == fate_hole)
      interval.holes += run->rows;
    else
      interval.rows_dropped += static_cast<std::uint32_t>(run->rows);
    interval.non_final_rows += static_cast<std::uint32_t>(run->shared());
    interval.next = run->to;
    add_run(runs, *run, announced_max);
  }
}

Result<Account> Ledger::account(std::span<const RowTag> rows, const Cursors& stands,
                                std::uint32_t generation) {
  const std::lock_guard lock(mutex_);
  const Partition nothing;
  const auto runs_of = [&](const PartitionId& id) -> const Partition& {
    const auto known = partitions_.find(id);
    return known == partitions_.end() || generation != generation_ ? nothing : known->second;
  };
  Account out;
  std::map<PartitionId, RowInterval> intervals;
  const auto open = [&](const PartitionId& id, const RowCursor& at) {
    RowInterval& interval = intervals.try_emplace(id, RowInterval{id, at, at, 0, 0, 0, 0}).first->second;
    extend(runs_of(id), interval, out.runs);
  };
  for (const auto& [id, at] : stands) open(id, at);
  for (const auto& [id, partition] : partitions_)
    if (partition.began && !stands.contains(id)) open(id, *partition.began);
  for (const RowTag& tag : rows) {
    const PartitionId& id = tag.position.partition;
    const auto interval = intervals.find(id);
    if (interval == intervals.end() || interval->second.next != tag.position.at)
      return gap(id, interval == intervals.end() ? RowCursor{-1, 0} : interval->second.next, tag.position.at);
    add_row(interval->second, tag);
    extend(runs_of(id), interval->second, out.runs);
  }
  for (const auto& [id, interval] : intervals) {
    RIVULET_CHECK(interval.adds_up(), "the rows of an interval do not account for all its offsets");
    if (interval.empty()) continue;
    partitions_[id].sealed = interval.next;
    out.intervals.push_back(interval);
  }
  return out;
}

RowCursor Ledger::behind_runs(const PartitionId& partition, RowCursor at) const {
  const std::lock_guard lock(mutex_);
  const auto known = partitions_.find(partition);
  if (known == partitions_.end()) return at;
  while (const SkippedRange* run = run_at(known->second.runs, at)) at = run->to;
  return at;
}

bool Ledger::splits(const PartitionId& partition, const RowCursor& at) const {
  const std::lock_guard lock(mutex_);
  const auto known = partitions_.find(partition);
  return known != partitions_.end() && std::ranges::any_of(known->second.runs, [&](const SkippedRange& run) {
           return run.from < at && at < run.to;
         });
}

void Ledger::prune(const Cursors& stands) {
  if (runs_.load(std::memory_order_relaxed) == 0) return;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, at] : stands) {
    const auto known = partitions_.find(id);
    if (known == partitions_.end()) continue;
    auto& runs = known->second.runs;
    while (!runs.empty() && !(at < runs.front().to)) {
      runs.pop_front();
      runs_.fetch_sub(1, std::memory_order_relaxed);
    }
  }
}

}  // namespace rivulet::buffer
