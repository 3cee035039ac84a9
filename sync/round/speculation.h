#pragma once
#include <cstdint>
#include <string_view>

#include "sync/round/round.h"

namespace rivulet::sync {

/// Whether contributions leave together with the facts, before there is a plan: when the last rounds all were
/// what can be as_expected, gradients that everyone sends to everyone. It follows from the rounds of a view
/// alone, so all its devices say the same.
class Speculation {
 public:
  /// A larger payload is not sent on a guess: what it takes to travel outweighs the wait for a plan.
  static constexpr std::uint64_t payload_bytes_max = std::uint64_t{1} << 20;
  /// Rounds in a row that came as as_expected before one is bet on: at most every fifth payload is for
  /// nothing.
  static constexpr std::uint32_t rounds_before = 4;

  static constexpr std::string_view collective = "gather";
  static constexpr std::string_view compressor = "dense";

  /// `possible`: there are peers, the compressor can do it, and it is wanted. `payload_bytes`: of a
  /// contribution.
  Speculation(bool possible, std::uint64_t payload_bytes)
      : possible_(possible && payload_bytes <= payload_bytes_max), payload_bytes_(payload_bytes) {}
  /// Those who have rows in the round that begins now send their contribution with their facts.
  /// `schedule`: of that round.
  [[nodiscard]] bool speculates(const policy::Schedule& schedule) const noexcept;
  /// After the facts of each round: it is what is bet on.
  bool see(const Round& round);

 private:
  bool possible_;
  std::uint64_t payload_bytes_;
  std::uint32_t streak_ = 0;
};

}  // namespace rivulet::sync
