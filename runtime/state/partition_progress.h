#pragma once
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <ranges>
#include <vector>

#include "core/record.h"
#include "core/row.h"

namespace rivulet::runtime {

inline constexpr std::size_t passed_runs_max = 256;  ///< per partition in a state
inline constexpr std::size_t partitions_max =
    16'384;  ///< per job: everything that is folded must fit into a state image

/// Rows and offsets that skipped ranges exclude from training.
struct Passed {
  DropCounts dropped{};
  std::uint64_t holes = 0;
};
/// Sums up skipped ranges of one partition. Returns nullopt if a range lies outside `from` to `to`, has an
/// unknown fate, or if the sum overflows.
template <std::ranges::input_range Runs>
std::optional<Passed> passed_between(const RowCursor& from, const RowCursor& to, Runs&& runs) {
  Passed passed;
  std::uint64_t all = 0;
  for (const SkippedRange& run : runs) {
    if (run.from < from || to < run.to || run.to < run.from) return std::nullopt;
    if (run.fate != fate_hole && run.fate >= drop_reasons) return std::nullopt;
    if (run.rows > std::numeric_limits<std::uint64_t>::max() - all) return std::nullopt;
    all += run.rows;
    (run.fate == fate_hole ? passed.holes : passed.dropped.at(run.fate)) += run.rows;
  }
  return passed;
}

/// The group's ledger of one partition. It accounts for everything between `start` and `next`:
///   next.offset - start.offset = trained + dropped - shared + holes.
struct PartitionProgress {
  RowCursor start;  ///< where the group began to read
  RowCursor next;
  std::uint64_t trained = 0;
  std::uint64_t shared = 0;        ///< rows that are not the last of their record
  std::uint64_t holes = 0;         ///< offsets without a row
  DropCounts dropped{};            ///< rows, by reason
  std::vector<SkippedRange> runs;  ///< ranges of dropped rows and holes; everything else was trained

  bool operator==(const PartitionProgress&) const = default;
  [[nodiscard]] std::uint64_t all_dropped() const noexcept {
    return std::accumulate(dropped.begin(), dropped.end(), std::uint64_t{0});
  }
  /// True if the ranges lie between start and next and match the counters.
  [[nodiscard]] bool is_explained() const {
    const auto passed = passed_between(start, next, runs);
    return passed && passed->dropped == dropped && passed->holes == holes;
  }
  [[nodiscard]] bool adds_up() const noexcept {
    return static_cast<std::uint64_t>(next.offset - start.offset) == trained + all_dropped() - shared + holes;
  }
};

}  // namespace rivulet::runtime
