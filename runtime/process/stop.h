#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "core/result.h"

namespace rivulet::runtime {

/// When the whole group ends by itself: agreed, so that all devices end in the same round with 0.
struct StopAfter {
  std::uint64_t rows = 0;    ///< rows trained by the group since this process entered it; 0 = no limit
  std::uint64_t rounds = 0;  ///< applied rounds since then
  double seconds = 0;        ///< since then
};
/// "rows=60000" | "rounds=200" | "seconds=35". Errors: usage.
Result<StopAfter> parse_stop_after(const std::string& text);

/// Set by signal handlers: 0 = continue, 1 = finish the round and leave, 2 = now.
using StopRequest = std::atomic<int>;

}  // namespace rivulet::runtime
