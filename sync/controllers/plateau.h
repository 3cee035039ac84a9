#pragma once
#include <cstddef>
#include <span>

/// Detects whether the loss of a group still falls. Pure.
namespace rivulet::sync::policy {

/// Compares means over thousands of rows with the best one so far. Noisier rows need longer means. After
/// several means in a row that are not clearly better, the loss no longer falls. A loss near 0 cannot fall
/// further. A loss that has never fallen much gets more time, since many models start slowly. A mean clearly
/// worse than the best one restarts the detection.
class Plateau {
 public:
  static constexpr std::size_t numbers = 5;

  /// `memory`: [numbers], 0 at first.
  explicit Plateau(std::span<double> memory) : memory_(memory.first<numbers>()) {}

  /// Adds the loss of rows of the whole group. `noise`: relative variance of the loss of a single row.
  void add(double loss_sum, double rows, double noise);
  /// Restarts after a change of the stream.
  void restart();
  [[nodiscard]] bool reached() const;
  /// Maximum loss that counts as 0: a small fraction of the first loss.
  [[nodiscard]] double nothing() const;

 private:
  void look_at(double mean, double rows, double noise);
  std::span<double, numbers> memory_;
};

}  // namespace rivulet::sync::policy
