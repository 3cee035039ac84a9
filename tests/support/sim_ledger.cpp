#include "tests/support/sim_ledger.h"

#include <fmt/format.h>

#include <algorithm>

namespace rivulet::testing {
namespace {

/// Adds rows of one partition to the expected contents.
class Entries {
 public:
  Entries(PartitionId id, const runtime::PartitionProgress& progress, std::int64_t kept_from, RowBooks& books,
          Finding& finding)
      : id_(id), progress_(progress), kept_from_(kept_from), books_(books), finding_(finding) {}

  /// Reading began after them.
  void begin(const RowCursor& start) {
    for_each_row(id_.partition, {}, start, [&](const RowCursor& at, double number) { miss(at, number); });
  }
  void resume(const RowCursor& from, std::vector<double>& trained) {
    std::vector<SkippedRange> holes;
    for (const SkippedRange& run : progress_.runs)
      if (run.fate == fate_hole && from < run.to) holes.push_back(run);
    const auto is_hole = [&](const RowCursor& at) {
      return std::ranges::any_of(holes, [&](const auto& run) { return run.from <= at && at < run.to; });
    };
    for_each_row(id_.partition, from, progress_.next, [&](const RowCursor& at, double number) {
      if (is_hole(at))
        miss(at, number);
      else
        trained.push_back(number);
    });
  }

 private:
  void miss(const RowCursor& at, double number) {
    RowSums& missing = books_.missing[id_.partition];
    missing.rows += 1;
    missing.numbers += number;
    if (at.offset >= kept_from_ && finding_.empty())
      finding_ = fmt::format("C2: row {}.{} of partition {} was skipped as deleted, but exists", at.offset,
                             at.row, id_.partition);
  }

  const PartitionId id_;
  const runtime::PartitionProgress& progress_;
  const std::int64_t kept_from_;
  RowBooks& books_;
  Finding& finding_;
};

}  // namespace

RowBooks books_after(const RowBooks& before, const runtime::AgreedState& after, const SimStreams& streams,
                     Finding& finding) {
  RowBooks books = before;
  std::vector<double> trained;
  for (const auto& [id, progress] : after.partitions) {
    Entries entries(id, progress, streams.kept_from[static_cast<std::size_t>(id.partition)], books, finding);
    const auto [next, is_new] = books.next.try_emplace(id, progress.start);
    if (is_new) entries.begin(progress.start);
    entries.resume(next->second, trained);
    next->second = progress.next;
  }
  books.line = learned(books.line, trained);
  return books;
}

}  // namespace rivulet::testing
