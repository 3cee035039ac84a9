#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/gradient_view.h"

namespace rivulet::sync {

/// How the squared norm of a long vector is spread over its numbers: which share of it the k largest have,
/// for every k at once, from one pass. Sizes are counted in bins of a thirty-second of an octave, each taken
/// as evenly filled: the shares are right to a thousandth or so. Numbers that are not finite count as 0.
/// Pure; any thread. Memory: 64 KiB. Cost: bench_selection.
class EnergyHistogram {
 public:
  EnergyHistogram();
  /// Counts weight * mine + kept. `kept`: as many numbers, or none.
  void add(const GradientView& mine, double weight, const GradientView& kept = {});

  /// Of the squared norm, in the largest `keep` of the numbers, 0 < keep <= 1; 0 if all of them are 0.
  [[nodiscard]] double share(double keep) const;
  /// The same for several, which fall.
  [[nodiscard]] std::vector<double> shares(std::span<const double> keeps) const;
  /// Of all that was added.
  [[nodiscard]] double squares() const;

 private:
  /// [2 * bins], by exponent and the first five bits of the fraction: neighbours are counted apart, so that
  /// none waits.
  std::vector<std::uint32_t> bins_;
  std::uint64_t count_ = 0;
};

}  // namespace rivulet::sync
