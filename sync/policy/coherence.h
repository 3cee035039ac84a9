#pragma once
#include <cmath>
#include <optional>
#include <span>

#include "sync/message/facts.h"

namespace rivulet::sync::policy {

/// Replaces a non-finite received value with 0.
inline double finite(double number) {
  return std::isfinite(number) ? number : 0;
}

/// Replaces non-finite values in a memory. Otherwise they would persist and fail every comparison.
inline void keep_finite(std::span<double> memory) {
  for (double& value : memory) value = finite(value);
}

/// A device's delta since the last synchronization.
struct Delta {
  double rows = 0;                ///< trained rows behind the delta
  std::span<const float> sketch;  ///< sketch of the delta, with the same random numbers on every device
  double signal = 0;              ///< inner product of its delta over odd steps and its delta over even steps
  double noise = 0;               ///< a quarter of their squared distance
  double steps = 1;               ///< local steps behind the delta
};

/// Similarity of the deltas of one synchronization, as shares of the squared deltas. Single values are
/// dominated by chance.
struct Coherence {
  double common = 0;    ///< measured similarity of the devices' deltas
  double expected = 0;  ///< expected similarity if all drew from one stream, -1 to 1: about 0 if all is noise
  double devices = 2;   ///< number of independent estimates of the expectation
};

/// Measures the similarity of the devices' deltas, and its expected value if all drew from one stream, each
/// with the noise of its batches. nullopt if no device has moved or data is missing. Non-finite
/// values count as 0. Source: docs/adr/0031.
std::optional<Coherence> coherence(std::span<const Delta> deltas);

/// Estimate over many synchronizations: measured similarity divided by mean expected similarity, weighted by
/// certainty (a Kalman filter of one value). Divides by the mean, since a single expected value may be large
/// by chance. Starts at 1 (alike) and decays back without new measurements, so that
/// local steps are tried again.
class CoherenceFilter {
 public:
  static constexpr std::size_t numbers = 7;
  /// `memory`: [numbers], 0 at first.
  explicit CoherenceFilter(std::span<double> memory) : memory_(memory.first<numbers>()) {}
  /// `local_steps`: local steps of the devices. A change by a factor of 2 resets the mean expectation.
  void add(const std::optional<Coherence>& now, double local_steps);
  /// Resets the expectation after a change of the streams.
  void begin_anew() { memory_[seen] = memory_[age] = 0; }
  /// 0 to 2: about 1 if streams are alike, well below if they differ.
  [[nodiscard]] double alike() const { return memory_[mean]; }
  [[nodiscard]] bool has_begun() const { return memory_[variance] > 0; }
  /// Whether the estimate is below the limit by more than its standard deviation.
  [[nodiscard]] bool below(double limit) const {
    return memory_[mean] + std::sqrt(memory_[variance]) < limit;
  }
  /// Whether the expected similarity may be chance, so that the measured one reveals nothing about streams.
  [[nodiscard]] bool all_is_noise() const;

 private:
  [[nodiscard]] double weight() const;
  /// Variance of the mean expectation.
  [[nodiscard]] double doubt() const;
  static constexpr std::size_t mean = 0, variance = 1;
  static constexpr std::size_t expected = 2, spread = 3;  ///< mean and variance of the expectation
  static constexpr std::size_t seen = 4, steps = 5;  ///< synchronizations in that mean; local steps of each
  static constexpr std::size_t age = 6;              ///< synchronizations since the start
  std::span<double, numbers> memory_;
};

/// Relative variance of the loss of one row, from the differences between devices and the rise above the
/// usual loss; 0: unknown. A few outliers dominate a small loss, so it may jump by chance. A falling loss
/// counts as learning, and a rise by more than half does not count as noise.
double loss_variance(const FactsTable& table, double loss, double usual);

/// log2(x) for x > 0, accurate to the last one or two digits; 0 otherwise. Uses only exact operations.
double log2_of(double x);
/// log2(x) for x >= 1, linear between powers of two, at most 0.09 too small. Uses only exact operations, so
/// that all devices get the same bits with any library and processor.
double doublings(double x);

}  // namespace rivulet::sync::policy
