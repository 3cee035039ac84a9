#pragma once
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/record.h"
#include "core/row.h"

namespace rivulet::runtime {

inline constexpr std::size_t passed_runs_max = 256;  ///< of one partition in a state

/// The group's books of one partition: what became of everything between `start` and `next`, exactly,
///   next.offset - start.offset = trained + dropped - shared + holes.
struct PartitionProgress {
  RowCursor start;  ///< where the group began to read it
  RowCursor next;
  std::uint64_t trained = 0;
  std::uint64_t shared = 0;     ///< rows behind which their record goes on
  std::uint64_t holes = 0;      ///< offsets that hold no row
  DropCounts dropped{};         ///< rows, by reason
  std::vector<PassedRun> runs;  ///< where the dropped rows and the holes are; all else was trained

  [[nodiscard]] std::uint64_t all_dropped() const noexcept {
    return std::accumulate(dropped.begin(), dropped.end(), std::uint64_t{0});
  }
  /// The runs lie between start and next and count what the counters count.
  [[nodiscard]] bool is_explained() const {
    DropCounts found{};
    std::uint64_t found_holes = 0;
    for (const PassedRun& run : runs) {
      if (run.from < start || next < run.to || run.to < run.from) return false;
      if (run.fate != fate_hole && run.fate >= drop_reasons) return false;
      (run.fate == fate_hole ? found_holes : found.at(run.fate)) += run.rows;
    }
    return found == dropped && found_holes == holes;
  }
  [[nodiscard]] bool adds_up() const noexcept {
    return static_cast<std::uint64_t>(next.offset - start.offset) == trained + all_dropped() - shared + holes;
  }
};

}  // namespace rivulet::runtime
