#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/gradient_view.h"

namespace rivulet::sync {

/// Distribution of a vector's squared norm over its elements: the share of the k largest, for all k, from one
/// pass. Magnitudes are counted in bins of 1/32 octave, each assumed to be uniform: shares are accurate to
/// about 0.001. Non-finite elements count as 0. Pure; any thread. Memory: 64 KiB. Cost: bench_selection.
class EnergyHistogram {
 public:
  EnergyHistogram();
  /// Counts weight * mine + kept. `kept`: empty, or with the size of `mine`.
  void add(const GradientView& mine, double weight, const GradientView& kept = {});

  /// Share of the squared norm in the largest elements, a fraction 0 < `keep` <= 1 of all; 0 if all are 0.
  [[nodiscard]] double share(double keep) const;
  /// The shares for several descending values of `keep`.
  [[nodiscard]] std::vector<double> shares(std::span<const double> keeps) const;
  /// Squared norm of all added elements.
  [[nodiscard]] double squares() const;

 private:
  /// [2 * bins], by exponent and the first five bits of the fraction. Adjacent elements use separate
  /// counters, so that increments do not wait for each other.
  std::vector<std::uint32_t> bins_;
  std::uint64_t count_ = 0;
};

}  // namespace rivulet::sync
