#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/time.h"

namespace rivulet::runtime {

/// A queue of due times by number. The first entry is the earliest; on a tie, the lowest number. Implemented
/// as a tree with fan-out eight: each parent holds the earliest time of its children. Eight times fill a
/// cache line, and the upper levels stay cached. Owner: one thread.
class Agenda {
 public:
  /// Adds the next number. It is not due until set() is called.
  std::uint32_t add();
  /// Sets the due time of `number`. Touches at most one cache line per level, and none above a parent that
  /// does not change.
  void set(std::uint32_t number, TimePoint at) noexcept;
  [[nodiscard]] TimePoint of(std::uint32_t number) const noexcept { return levels_.front()[number]; }
  /// Returns the earliest due time; TimePoint::max() if nothing is due.
  [[nodiscard]] TimePoint earliest() const noexcept { return top_; }
  /// Returns the number with the earliest time. Requires at least one number.
  [[nodiscard]] std::uint32_t first() const noexcept;

 private:
  static constexpr std::size_t fan = 8;
  using Level = std::vector<TimePoint>;  ///< a multiple of `fan` long; unused entries are never due

  std::uint32_t numbers_ = 0;
  std::vector<Level> levels_{Level(fan, TimePoint::max())};  ///< levels from the numbers up to a single line
  TimePoint top_ = TimePoint::max();
};

}  // namespace rivulet::runtime
