#pragma once
#include <cstdint>
#include <string>

#include "sync/round/round.h"

namespace rivulet::sync {

/// Outcome of contributions sent before the plan was known.
enum class SpeculationOutcome : std::uint8_t { none, used, wasted };

/// Decides whether contributions leave with the facts, before the plan: if the last rounds were as expected
/// and the collective allows it (AggregationEntry::may_leave_early). Depends only on the rounds of a view, so
/// all its devices decide alike.
class Speculation {
 public:
  /// Larger payloads are not speculated: their transfer takes longer than the wait for a plan.
  static constexpr std::uint64_t payload_bytes_max = std::uint64_t{1} << 20;
  /// Expected rounds in a row before speculation, which limits wasted payloads to one in five.
  static constexpr std::uint32_t rounds_before = 4;

  /// `possible`: there are peers, and speculation is enabled.
  explicit Speculation(bool possible) : possible_(possible) {}
  /// Whether devices with a contribution send it with their facts in the round that begins. `schedule`: of
  /// that round.
  [[nodiscard]] bool speculates(const policy::Schedule& schedule) const noexcept;
  /// Call after the facts of each round, entered with `schedule`. Returns whether the round was as expected.
  /// `flushes`: the round also sends residuals, which is never expected.
  bool see(const Round& round, const policy::Schedule& schedule, bool flushes);

 private:
  bool possible_;
  std::uint32_t streak_ = 0;
  std::string compressor_;           ///< compressor of the streak
  std::uint64_t payload_bytes_ = 0;  ///< receives of this size are posted ahead
};

}  // namespace rivulet::sync
