#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace rivulet::testing {

/// Ids of devices by rank: "0", "1", ...
inline std::vector<std::string> members(std::size_t devices) {
  std::vector<std::string> ids;
  for (std::size_t rank = 0; rank < devices; ++rank) ids.push_back(std::to_string(rank));
  return ids;
}

}  // namespace rivulet::testing
