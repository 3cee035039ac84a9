#pragma once
#include <compare>
#include <cstdint>
#include <string>

namespace rivulet {

/// Identifies a state of the group. Ordered by members: a later lineage wins over more steps. Equal stamps
/// imply equal digests.
struct Stamp {
  std::uint64_t lineage = 0;  ///< number of the view that applied the last step or adopted the state
  std::uint64_t step = 0;     ///< applied rounds since the run began
  auto operator<=>(const Stamp&) const = default;
};

/// "3.500": for users and file names.
inline std::string text_of(const Stamp& stamp) {
  return std::to_string(stamp.lineage) + "." + std::to_string(stamp.step);
}

}  // namespace rivulet
