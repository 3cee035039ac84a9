#pragma once
#include "core/gradient_view.h"
#include "runtime/state/agreed_state.h"
#include "sync/message/facts.h"
#include "sync/residual/residual.h"

/// How a round changes the agreed state, the same on every device and in a replay. Pure.
namespace rivulet::runtime {

/// True if no value is NaN or infinite. Needs a host view. Sums that fail this check are never applied.
bool all_finite(const GradientView& numbers);

/// Maximum magnitude of a device's values in a sum. Squares and sums over all devices stay far from infinity
/// in float32 for every optimizer and collective.
inline constexpr double sum_part_max = 0x1p48;
/// True if values that are only averaged (buffers), and every average of them, are finite.
bool fits_in_average(const GradientView& numbers);

/// Completes one step of view `view`: advances the clocks and folds the intervals of all devices in rank
/// order, so that offsets move only together with the parameters. `trained`: false if the sum was not finite;
/// then the rows count as dropped.
void fold_round(AgreedState& state, const sync::FactsTable& table, std::uint64_t view, bool trained);

/// Rescales the residual like the parameters it will be added to: from normalization `before` to that of
/// `now`.
void follow_columns(sync::Residual& residual, std::span<const devices::Column> before,
                    const devices::ModelState& now);

}  // namespace rivulet::runtime
