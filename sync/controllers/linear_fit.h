#pragma once
#include <array>
#include <cstddef>
#include <span>

namespace rivulet::sync::policy {

/// Seconds = fixed + each x, by least squares over what was measured, the older the less: of an agreement by
/// its bytes, of a step by its rows. Works on memory that somebody else keeps. Pure.
class LinearFit {
 public:
  static constexpr std::size_t numbers = 5;
  using Memory = std::array<double, numbers>;
  struct Habits {
    double kept = 0.9;        ///< of what is known already, with each that is added
    double fixed_part = 0.5;  ///< of the seconds, thought to be fixed before two sizes were seen
    double doubt = 0.05;      ///< how much that thought weighs: what sizes say that hardly differ is noise
  };
  /// `memory`: [numbers], 0 at first.
  explicit LinearFit(std::span<double> memory) : LinearFit(memory, Habits{}) {}
  LinearFit(std::span<double> memory, const Habits& habits)
      : memory_(memory.first<numbers>()), habits_(habits) {}
  void add(double x, double seconds);
  /// 0 if nothing was measured; never below 0.
  [[nodiscard]] double seconds(double x) const;
  [[nodiscard]] double fixed() const { return seconds(0); }
  [[nodiscard]] double each() const;

 private:
  std::span<double, numbers> memory_;  ///< sums of weight, x, y, x x, x y
  Habits habits_;
};

}  // namespace rivulet::sync::policy
