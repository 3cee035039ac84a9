#pragma once
#include "core/gradient_view.h"
#include "runtime/state/agreed_state.h"
#include "sync/message/facts.h"
#include "sync/residual/residual.h"

/// What an agreed round makes of the agreed state, the same on every device and in a replay. Pure.
namespace rivulet::runtime {

/// Of a host view: no NaN, no infinity. An agreed sum that has one is never applied.
bool all_finite(const GradientView& numbers);

/// What a device brings to a sum is no larger: squares, and sums of all devices' numbers, stay far from
/// infinity in float32, whatever an optimizer or a collective makes of them.
inline constexpr double sum_part_max = 0x1p48;
/// Of numbers that are averaged, not stepped with (buffers): finite, and no average of them is anything else.
bool fits_in_average(const GradientView& numbers);

/// One more step of view `view`: the clocks advance, and everybody folds everybody's intervals in rank order,
/// so that the offsets move with the parameters or not at all. `trained`: false if the sum was not finite,
/// whose rows are then dropped ones.
void fold_round(AgreedState& state, const sync::FactsTable& table, std::uint64_t view, bool trained);

/// What was not sent yet follows the parameters that it will be added to, from where a model saw the columns
/// `before` to where it sees those of `now`.
void follow_columns(sync::Residual& residual, std::span<const devices::Column> before,
                    const devices::ModelState& now);

}  // namespace rivulet::runtime
