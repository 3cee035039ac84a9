#pragma once
#include <utility>
#include <vector>

#include "devices/columns.h"
#include "runtime/checkpoint/private_part.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/round_update.h"
#include "sync/residual/residual.h"

namespace rivulet::runtime {

/// The residual of this device. Follows the model's normalization, so that it stays valid for the parameters
/// that it will be added to. Owner: the train thread.
class KeptResidual {
 public:
  explicit KeptResidual(sync::Residual residual) : residual_(std::move(residual)) {}

  /// Returns the residual, for the session of each view.
  [[nodiscard]] sync::Residual& numbers() noexcept { return residual_; }
  [[nodiscard]] const sync::Residual& numbers() const noexcept { return residual_; }

  /// Restores the residual saved with this state.
  void restore(const PrivatePart& part, const AgreedState& state) {
    follow_columns_of(state);
    if (!part.residual.empty()) residual_.restore(state.stamp, state.rows, part.residual, part.of_deltas);
  }
  /// Call at the start of a view. Keeps or drops the contribution to an unfinished round, depending on
  /// whether `state` includes it. Returns the norm of a residual discarded because it belongs to another
  /// state.
  double resolve(const Stamp& target, const AgreedState& state, const GradientView& contribution) {
    const double lost = residual_.resolve(target, state.rows, contribution);
    follow_columns_of(state);
    return lost;
  }
  /// Call when a round has produced this state.
  void follow(const AgreedState& state) {
    residual_.follow(state.stamp, state.rows);
    follow_columns_of(state);
  }

 private:
  void follow_columns_of(const AgreedState& state) {
    const auto columns = state.model.columns();
    if (!columns_.empty()) follow_columns(residual_, columns_, state.model);
    columns_.assign(columns.begin(), columns.end());
  }

  sync::Residual residual_;
  std::vector<devices::Column> columns_;  ///< normalization of the residual
};

}  // namespace rivulet::runtime
