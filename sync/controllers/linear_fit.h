#pragma once
#include <array>
#include <cstddef>
#include <span>

namespace rivulet::sync::policy {

/// Fits seconds = fixed + each * x by least squares with decaying weights: the time of a synchronization from
/// its bytes, or of a step from its rows. Works on the caller's memory. Pure.
class LinearFit {
 public:
  static constexpr std::size_t numbers = 5;
  using Memory = std::array<double, numbers>;
  struct Habits {
    double kept = 0.9;        ///< weight of the previous measurements with each new one
    double fixed_part = 0.5;  ///< prior of the fixed share of the seconds, before two sizes were measured
    double doubt = 0.05;      ///< weight of that prior: differences between similar sizes are noise
  };
  /// `memory`: [numbers], 0 at first.
  explicit LinearFit(std::span<double> memory) : LinearFit(memory, Habits{}) {}
  LinearFit(std::span<double> memory, const Habits& habits)
      : memory_(memory.first<numbers>()), habits_(habits) {}
  void add(double x, double seconds);
  /// 0 before the first measurement; never negative.
  [[nodiscard]] double seconds(double x) const;
  [[nodiscard]] double fixed() const { return seconds(0); }
  [[nodiscard]] double each() const;

 private:
  std::span<double, numbers> memory_;  ///< sums of weight, x, y, x x, x y
  Habits habits_;
};

}  // namespace rivulet::sync::policy
