#pragma once
#include <cstdint>
#include <string>

#include "sync/round/round.h"

namespace rivulet::sync {

/// What became of contributions that left before the plan was known.
enum class SpeculationOutcome : std::uint8_t { none, used, wasted };

/// Whether contributions leave together with the facts, before there is a plan, by a collective that can
/// (AggregationEntry::may_leave_early): when the last rounds all were what can be expected. It follows from
/// the rounds of a view alone, so all its devices say the same.
class Speculation {
 public:
  /// A larger payload is not sent on a guess: what it takes to travel outweighs the wait for a plan.
  static constexpr std::uint64_t payload_bytes_max = std::uint64_t{1} << 20;
  /// Rounds in a row that came as expected before one is bet on: at most every fifth payload is for nothing.
  static constexpr std::uint32_t rounds_before = 4;

  /// `possible`: there are peers, and it is wanted.
  explicit Speculation(bool possible) : possible_(possible) {}
  /// Those who have something to send in the round that begins now send it with their facts. `schedule`: of
  /// that round.
  [[nodiscard]] bool speculates(const policy::Schedule& schedule) const noexcept;
  /// After the facts of each round, which was entered with `schedule`: it is what is bet on. `flushes`:
  /// residuals are sent with it, which nobody foresaw.
  bool see(const Round& round, const policy::Schedule& schedule, bool flushes);

 private:
  bool possible_;
  std::uint32_t streak_ = 0;
  std::string compressor_;           ///< of the streak
  std::uint64_t payload_bytes_ = 0;  ///< receives of this size are posted ahead
};

}  // namespace rivulet::sync
