#pragma once
#include <cmath>
#include <optional>
#include <span>

#include "sync/message/facts.h"

namespace rivulet::sync::policy {

/// Of a number that anybody may have sent: 0 if it is none.
inline double finite(double number) {
  return std::isfinite(number) ? number : 0;
}

/// Of a memory: numbers that are none would stay for ever, and comparisons with them are never true.
inline void keep_finite(std::span<double> memory) {
  for (double& value : memory) value = finite(value);
}

/// How far a device has come since the group agreed last.
struct Movement {
  double rows = 0;                ///< that it comes from
  std::span<const float> sketch;  ///< of the movement: the same numbers of every device
  double signal = 0;              ///< inner product of the movements of its odd and of its even steps
  double noise = 0;               ///< a quarter of their squared distance
  double steps = 1;               ///< that it comes from
};

/// What one agreement says of whether all move the same way. Each number is a share of the squared movements,
/// and of each chance makes a part, so that one alone may say anything.
struct Coherence {
  double common = 0;  ///< what the devices' movements have in common
  double expected =
      0;  ///< ... and would have if all drew from one stream, -1 to 1: about 0 where all is noise
  double devices = 2;  ///< each of which says for itself what is expected
};

/// What the movements of devices have in common, and would have if all drew from one stream, each with the
/// noise of its batches. Nothing, where nobody has moved, or nobody knows. Numbers that are not finite count
/// as 0. Source: docs/adr/0031.
std::optional<Coherence> coherence(std::span<const Movement> movements);

/// What many agreements say: what was in common, over what was expected on average, each as much as it knows
/// (a Kalman filter of one number). One agreement's own expectation is not a measure: where it is large by
/// chance, what is in common is not. Begins with streams that are alike, and comes back to that by and by
/// where nothing more is seen: so it is tried again.
class CoherenceFilter {
 public:
  static constexpr std::size_t numbers = 7;
  /// `memory`: [numbers], 0 at first.
  explicit CoherenceFilter(std::span<double> memory) : memory_(memory.first<numbers>()) {}
  /// `own_steps`: that devices have made. What was expected of half as many, or twice as many, is forgotten.
  void add(const std::optional<Coherence>& now, double own_steps);
  /// The streams have changed: what was expected so far says nothing of what will be.
  void begin_anew() { memory_[seen] = memory_[age] = 0; }
  /// About 1: streams are alike; well below: they differ; 0 to 2.
  [[nodiscard]] double alike() const { return memory_[mean]; }
  [[nodiscard]] bool has_begun() const { return memory_[variance] > 0; }
  /// Below the limit, by more than what is not known of it.
  [[nodiscard]] bool below(double limit) const {
    return memory_[mean] + std::sqrt(memory_[variance]) < limit;
  }
  /// What is expected in common is no more than what chance makes of it: similarity says nothing of streams.
  [[nodiscard]] bool all_is_noise() const;

 private:
  [[nodiscard]] double weight() const;
  /// Variance of the average of what is expected.
  [[nodiscard]] double doubt() const;
  static constexpr std::size_t mean = 0, variance = 1;
  static constexpr std::size_t expected = 2, spread = 3;  ///< average, and variance of one
  static constexpr std::size_t seen = 4, steps = 5;       ///< agreements behind that average; their own steps
  static constexpr std::size_t age = 6;                   ///< agreements since all began
  std::span<double, numbers> memory_;
};

/// Relative variance of the loss of one row, from how much it differs between devices and from how far it has
/// risen above what is usual; 0: not known. Few rows that are far off make most of a small loss, so that it
/// jumps without a reason. A loss that falls is learning, and one that has risen by more than half is no
/// noise.
double loss_variance(const FactsTable& table, double loss, double usual);

/// log2(x) of x > 0, to the last digits or two; 0 of others. By exact operations alone, as the next.
double log2_of(double x);
/// log2(x) of x >= 1, linear between powers of two: by exact operations alone, so that all devices come to
/// the same bits whatever library and processor they have. At most 0.09 below.
double doublings(double x);

}  // namespace rivulet::sync::policy
