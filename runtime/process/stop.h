#pragma once
#include <atomic>
#include <cstdint>
#include <string>

#include "core/result.h"

namespace rivulet::runtime {

/// Limits after which the whole group stops. All devices stop in the same round and exit with code 0.
struct StopAfter {
  std::uint64_t rows = 0;    ///< trained by the group since this process joined; 0 = no limit
  std::uint64_t rounds = 0;  ///< applied rounds since joining; 0 = no limit
  double seconds = 0;        ///< since joining; 0 = no limit
};
/// "rows=60000" | "rounds=200" | "seconds=35". Errors: usage.
Result<StopAfter> parse_stop_after(const std::string& text);

/// Set by signal handlers: 0 = continue, 1 = finish the round and leave, 2 = stop now.
using StopRequest = std::atomic<int>;

}  // namespace rivulet::runtime
