#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/time.h"

namespace rivulet::runtime {

/// When each of many is due next, and who is first: the earliest, of those the lowest number. A tree in
/// which eight neighbours have one parent that holds their earliest time: eight times are a cache line, and
/// the numbers above them stay in the cache whatever else happens in between. Owner: one thread.
class Agenda {
 public:
  /// The next number, due never.
  std::uint32_t add();
  /// Replaces what `number` was due at. At most one line for each level; none above an unchanged parent.
  void set(std::uint32_t number, TimePoint at) noexcept;
  [[nodiscard]] TimePoint of(std::uint32_t number) const noexcept { return levels_.front()[number]; }
  /// TimePoint::max() if nobody is due.
  [[nodiscard]] TimePoint earliest() const noexcept { return top_; }
  /// Who that is. Needs one number at least.
  [[nodiscard]] std::uint32_t first() const noexcept;

 private:
  static constexpr std::size_t fan = 8;
  using Level = std::vector<TimePoint>;  ///< a multiple of `fan` long; who does not exist is never due

  std::uint32_t numbers_ = 0;
  std::vector<Level> levels_{Level(fan, TimePoint::max())};  ///< numbers first, at the end one line
  TimePoint top_ = TimePoint::max();
};

}  // namespace rivulet::runtime
