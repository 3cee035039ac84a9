#pragma once
#include <cstddef>
#include <span>

/// Whether there is something to learn: does the loss of a group still fall? Pure.
namespace rivulet::sync::policy {

/// Compares means over thousands of rows, the more of them the more single rows differ, with the best one so
/// far. Some in a row that are not clearly better, and the loss no longer falls. One that has fallen to
/// nothing has nothing left to fall; one that has never fallen much is given more time, for many models begin
/// so. A mean that is clearly worse than the best one begins anew: then there is something to learn again.
class Plateau {
 public:
  static constexpr std::size_t numbers = 5;

  /// `memory`: [numbers], 0 at first.
  explicit Plateau(std::span<double> memory) : memory_(memory.first<numbers>()) {}

  /// The loss of N rows, all of a group; `noise`: relative variance of that of a single row.
  void add(double loss_sum, double rows, double noise);
  /// The stream has changed.
  void restart();
  [[nodiscard]] bool reached() const;
  /// A loss of no more is none, beside that of the beginning.
  [[nodiscard]] double nothing() const;

 private:
  void look_at(double mean, double rows, double noise);
  std::span<double, numbers> memory_;
};

}  // namespace rivulet::sync::policy
