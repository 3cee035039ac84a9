#include "runtime/wiring/agenda.h"

#include <algorithm>

namespace rivulet::runtime {

std::uint32_t Agenda::add() {
  std::size_t needed = ++numbers_;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    if (needed > levels_[i].size()) levels_[i].resize(levels_[i].size() + fan, TimePoint::max());
    needed = (needed + fan - 1) / fan;
  }
  if (needed > 1) {  // the top level now spans two lines: adds a level above it
    Level above(fan, TimePoint::max());
    above.front() = top_;
    levels_.push_back(std::move(above));
  }
  return numbers_ - 1;
}

void Agenda::set(std::uint32_t number, TimePoint at) noexcept {
  std::size_t index = number;
  for (Level& level : levels_) {
    if (level[index] == at) return;
    level[index] = at;
    const TimePoint* line = level.data() + index / fan * fan;
    at = *std::min_element(line, line + fan);
    index /= fan;
  }
  top_ = at;
}

std::uint32_t Agenda::first() const noexcept {
  std::size_t index = 0;
  for (auto level = levels_.rbegin(); level != levels_.rend(); ++level) {
    const TimePoint* line = level->data() + index * fan;
    index = index * fan + static_cast<std::size_t>(std::find(line, line + fan - 1, top_) - line);
  }
  return static_cast<std::uint32_t>(index);
}

}  // namespace rivulet::runtime
