#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "runtime/state/agreed_state.h"

namespace rivulet::runtime {

/// Names the state that a group goes back to; step 0: the model as the job began.
std::string words_of_good(const Stamp& good);

/// Steps from the state that a group leaves to the one that it begins its next view with, where nobody has
/// the good one any more: as a round that only moves offsets.
inline constexpr std::uint64_t steps_kept = 1;
/// Same, where somebody has it: ahead of all who lack it, and by no single step, which they would take for
/// the result of what they have sent of their own.
inline constexpr std::uint64_t steps_gone_back = steps_kept + 2;

/// The state that a group which goes back from `left` begins its next view with: `good`, as the newest there
/// is, so that nobody prefers what it has left. It remembers that the group has gone back, and how often.
/// The first time the rows behind it are read again, at a smaller learning rate. When that was in vain it is
/// the rows: the second time they are left out. Pure.
void resume_from(AgreedState& good, const AgreedState& left, std::uint64_t view,
                 std::span<const sync::policy::ControllerMemory> remembered);

/// Same, where nobody has the good state any more: the one that is left goes on, and knows that it was in
/// vain. Pure.
void stay_in(AgreedState& left, std::uint64_t view,
             std::span<const sync::policy::ControllerMemory> remembered);

}  // namespace rivulet::runtime
