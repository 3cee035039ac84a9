#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"

namespace rivulet::testing {

/// State of a device in the kill harness, in memory that device and test share through a file, so it is
/// readable after kill -9. The test writes orders to the same page. All zero: no orders.
struct KillPage {
  enum class Phase : std::uint32_t { idle, compute, payload };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  // written by the device
  std::atomic<Phase> phase{Phase::idle};
  std::atomic<std::uint64_t> sent{0};             ///< payload bytes of this round, sent or received so far
  std::atomic<std::uint64_t> total{0};            ///< payload bytes of this round, posted so far
  std::atomic<std::uint64_t> applied{0};          ///< rounds of this process
  std::atomic<std::int64_t> first_applied_ns{0};  ///< on RealClock, of this process
  std::atomic<std::uint64_t> copies{0};           ///< injected rows that it computed on
  // written by the test
  std::atomic<std::uint32_t> hold_back{0};   ///< bit r: delay payloads for rank r
  std::atomic<std::uint32_t> compute_ms{0};  ///< minimum time of a gradient
  std::atomic<std::uint32_t> own_first{0};   ///< first of the row numbers that it counts
  std::atomic<std::uint32_t> own_end{0};     ///< end of them; 0: counts all rows
  std::atomic<std::uint32_t> warm{0};  ///< at its start: a device that is lost again and again need not wait
  std::atomic<std::int64_t> clock_step_ns{0};  ///< added to its wall clock

  [[nodiscard]] bool inside_payload() const { return phase == Phase::payload && sent > 0 && sent < total; }
};

/// A mapping of such a file, which has the size of one page.
class KillBoard {
 public:
  static constexpr const char* variable = "TALLY_BOARD";  ///< environment variable with the path
  /// Creates the file if missing. Errors: io.
  static Result<std::shared_ptr<KillPage>> open(const std::string& path);
  /// Returns the page named at the start of this process, or an unused one.
  static std::shared_ptr<KillPage> of_this_process();
};

}  // namespace rivulet::testing
