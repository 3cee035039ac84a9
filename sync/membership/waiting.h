#pragma once
#include <cstdint>

#include "sync/membership/next_view.h"

/// Private to membership/: what a device waits for before it closes the next view or leaves the present one.
/// Pure functions of the fold, but no rule of the fold depends on them.
namespace rivulet::sync::membership {

/// What a view of NextView::devices, if it has no error, waits for.
enum class StillMissing : std::uint8_t {
  nobody,
  lost,       ///< only members that others have lost, and newcomers that do not answer
  returning,  ///< a member that may come back: its process has restarted, or nobody has missed it; or a
              ///< newcomer that gets the last rounds of its copy
  starting,   ///< the group starts and has fewer devices than usual
  standing,   ///< the members of the last view, which may still be in it
};
StillMissing still_missing(const Fold& fold, const NextView& next, const GroupSizes& sizes);

/// Offset of the last record that shows that the last view is alive: its CLOSE, or any of its members.
std::int64_t last_heard_of_view(const Fold& fold);
/// Offset of the last record by which all its members were alive: a confirmation, or the oldest of the
/// members' newest records.
std::int64_t last_heard_of_all(const Fold& fold);
/// Offset of the newest HELLO, or READY of a device outside a view that stands; -1: none.
std::int64_t last_knock(const Fold& fold);
/// Whether an open device outside the view is ready to join it, and there is a place for it. Devices that
/// copy the state do not count: their donors know when they are ready.
bool joiner_waits(const Fold& fold, const GroupSizes& sizes);

/// Whether members may still train in the view of this run: none is ready for the next or has begun another
/// session, and not all have left.
bool view_stands(const Fold& fold);

}  // namespace rivulet::sync::membership
