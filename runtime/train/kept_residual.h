#pragma once
#include <utility>
#include <vector>

#include "devices/columns.h"
#include "runtime/checkpoint/private_part.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/round_update.h"
#include "sync/residual/residual.h"

namespace rivulet::runtime {

/// What this device has not sent yet, in the columns of the model that it will be added to: they move, and it
/// follows. Owner: the train thread.
class KeptResidual {
 public:
  explicit KeptResidual(sync::Residual residual) : residual_(std::move(residual)) {}

  /// Lent to the session of each view.
  [[nodiscard]] sync::Residual& numbers() noexcept { return residual_; }
  [[nodiscard]] const sync::Residual& numbers() const noexcept { return residual_; }

  /// As it was saved beside this state.
  void restore(const PrivatePart& part, const AgreedState& state) {
    follow_columns_of(state);
    if (!part.residual.empty()) residual_.restore(state.stamp, state.rows, part.residual, part.of_movements);
  }
  /// A view begins with this state: what an unfinished round has sent is part of it, or it is not. The norm
  /// of what belonged to another state, and is discarded.
  double resolve(const Stamp& target, const AgreedState& state, const GradientView& contribution) {
    const double lost = residual_.resolve(target, state.rows, contribution);
    follow_columns_of(state);
    return lost;
  }
  /// A round has led to this state.
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
  std::vector<devices::Column> columns_;  ///< that it is written in
};

}  // namespace rivulet::runtime
