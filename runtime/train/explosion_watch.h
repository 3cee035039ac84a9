#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/train/local_steps.h"

namespace rivulet::runtime {

/// Detects finite results that would ruin the model. Typical causes are a reading of 1e10 among small values,
/// and diverged local steps. The rows of such a batch are dropped; such a delta is not contributed. The rows
/// may be correct, so the limits grow after a few consecutive rejections. Replays do not need it, because
/// rejected rows are announced as dropped. Owner: the train thread.
class ExplosionWatch {
 public:
  /// `classes`: number of labels; an untrained model has the loss ln(classes). 0 for numeric targets.
  explicit ExplosionWatch(std::size_t classes);

  /// Sets the norm of the agreed parameters.
  void state_at(double norm) noexcept { parameters_ = norm; }
  /// The group has synchronized on rows with this loss.
  void agreed(double loss_sum, std::uint64_t rows);
  /// True if a step of this length (rate * norm of the gradient) is rejected.
  [[nodiscard]] bool refuses_step(double distance);
  /// True if a delta of this norm, made by these steps, is rejected.
  [[nodiscard]] bool rejects_delta(double norm, const LocalSteps& steps);

 private:
  [[nodiscard]] bool loss_exploded(const LocalSteps& steps) const;
  [[nodiscard]] double longest() const;
  [[nodiscard]] double patience(std::uint32_t refused) const;

  double untrained_;  ///< loss per row of an untrained model; 0 if unknown
  double parameters_ = 0;
  double largest_ = 0;       ///< norm of accepted deltas, decaying
  double usual_loss_ = 0;    ///< usual loss per row
  double highest_loss_ = 0;  ///< maximum loss per row, decaying
  std::uint32_t syncs_ = 0;
  std::uint32_t refused_steps_ = 0;    ///< consecutive rejections
  std::uint32_t rejected_deltas_ = 0;  ///< consecutive rejections
};

}  // namespace rivulet::runtime
