#include "runtime/train/model_health.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sync/policy/divergence.h"

namespace rivulet::runtime {

void ModelHealth::computed(LocalModel& model, const BatchView& batch, std::size_t own,
                           const AgreedState& state, double learning_rate_factor) {
  const bool finite = model.report().finite;
  if (model.finite() && batch.rows > 0) {
    const double norm = std::sqrt(model.report().gradient_norm2);
    const double longest = model.longest_gradient(state);
    const double clipped = longest > 0 ? std::min(norm, longest) : norm;
    if (explosions_.refuses_step(parts_.optimizer.learning_rate * learning_rate_factor * clipped))
      model.refuse();
  }
  guess_.computed(model.report(), batch, own, finite);
}

/// Only rows trained after a checkpoint count for its trial.
void ModelHealth::follow_trial(const AgreedState& state, const CheckpointCycle& checkpoints) {
  const Stamp now = sync::policy::Divergence::on_trial(state.controllers);
  if (std::exchange(on_trial_, now) != now) {
    trial_saved_ = false;
    guess_.begin_trial();
  }
  trial_saved_ = trial_saved_ || (now.step > 0 && checkpoints.is_on_disk(now));
  notice_.show(state.controllers);
}

}  // namespace rivulet::runtime
