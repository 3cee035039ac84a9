#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/result.h"

namespace rivulet::testing {

/// What a device of the kill harness tells while it runs and still tells after kill -9: memory that device
/// and test share through a file. Orders go the other way. All zero is a device that nothing is asked of.
struct KillPage {
  enum class Phase : std::uint32_t { idle, compute, payload };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  // the device says
  std::atomic<Phase> phase{Phase::idle};
  std::atomic<std::uint64_t> sent{0};     ///< payload bytes of this round that went out or came in so far
  std::atomic<std::uint64_t> total{0};    ///< payload bytes of this round that were posted so far
  std::atomic<std::uint64_t> applied{0};  ///< rounds, by this process
  std::atomic<std::int64_t> first_applied_ns{0};  ///< on RealClock, of this process
  std::atomic<std::uint64_t> copies{0};           ///< rows of others that it computed on
  // the test orders
  std::atomic<std::uint32_t> hold_back{0};   ///< bit r: payloads for rank r stay here
  std::atomic<std::uint32_t> compute_ms{0};  ///< a gradient takes so long
  std::atomic<std::uint32_t> own_first{0};   ///< numbers of its own rows: it counts no others
  std::atomic<std::uint32_t> own_end{0};     ///< 0: all are its own

  [[nodiscard]] bool inside_payload() const { return phase == Phase::payload && sent > 0 && sent < total; }
};

/// A mapping of such a file. The file's size is that of one page.
class KillBoard {
 public:
  static constexpr const char* variable = "TALLY_BOARD";  ///< names the file to a device
  /// Makes the file when it is not there. Errors: io.
  static Result<std::shared_ptr<KillPage>> open(const std::string& path);
  /// The one that this process was started with; a page that nobody looks at if none was named.
  static std::shared_ptr<KillPage> of_this_process();
};

}  // namespace rivulet::testing
