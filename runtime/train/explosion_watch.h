#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/train/own_steps.h"

namespace rivulet::runtime {

/// Whether what this device has computed leads nowhere, though every number of it is finite: a reading of
/// 1e10 among small ones, own steps that went too far. Such a batch is used up, such a movement is not
/// contributed. Rows may really be so: of refusals in a row, only the first few are by the first limits. Says
/// nothing to replays: what it refuses is announced as dropped. Owner: the train thread.
class ExplosionWatch {
 public:
  /// `classes`: labels that there are, of which a model that has learned nothing has the loss ln(classes); 0:
  /// targets are any numbers.
  explicit ExplosionWatch(std::size_t classes);

  /// The norm of the agreed parameters.
  void stands_at(double norm) noexcept { parameters_ = norm; }
  /// The group has agreed on rows with this loss.
  void agreed(double loss_sum, std::uint64_t rows);
  /// A step that would go so far (rate * norm of the gradient) is refused.
  [[nodiscard]] bool refuses_step(double distance);
  /// So is a movement of this norm, behind these steps.
  [[nodiscard]] bool refuses_movement(double norm, const OwnSteps& steps);

 private:
  [[nodiscard]] bool loss_exploded(const OwnSteps& steps) const;
  [[nodiscard]] double longest() const;
  [[nodiscard]] double patience(std::uint32_t refused) const;

  double untrained_;  ///< loss of a row; 0: not known
  double parameters_ = 0;
  double largest_ = 0;       ///< norm of what was not refused, fading
  double usual_loss_ = 0;    ///< of a row
  double highest_loss_ = 0;  ///< same, fading
  std::uint32_t agreements_ = 0;
  std::uint32_t refused_steps_ = 0;      ///< in a row
  std::uint32_t refused_movements_ = 0;  ///< in a row
};

}  // namespace rivulet::runtime
