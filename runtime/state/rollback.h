#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "runtime/state/agreed_state.h"

namespace rivulet::runtime {

/// Names the state that a group rolls back to; step 0 is the initial model of the job.
std::string words_of_good(const Stamp& good);

/// Added to the step of the old view's last state if no device has the good state, as in a round that only
/// advances offsets.
inline constexpr std::uint64_t steps_kept = 1;
/// Added instead if a device has the good state, so that the result is newer than every other state. More
/// than one step, because other devices would mistake one step for the result of contributions that they have
/// sent.
inline constexpr std::uint64_t rollback_steps = steps_kept + 2;

/// Makes `good` the first state of the next view when the group rolls back from `left`. Its stamp is the
/// newest, so no device prefers the state that it left. The memory of its controllers records the rollback
/// and the number of attempts. After the first rollback, the rows after the good state are read again, at a
/// smaller learning rate. If that fails, those rows are the cause, and later rollbacks skip them. Pure.
void resume_from(AgreedState& good, const AgreedState& left, std::uint64_t view,
                 std::span<const sync::policy::ControllerMemory> remembered);

/// The same if no device has the good state: the group continues from `left`, whose controllers' memory
/// records the failed attempt. Pure.
void stay_in(AgreedState& left, std::uint64_t view,
             std::span<const sync::policy::ControllerMemory> remembered);

}  // namespace rivulet::runtime
