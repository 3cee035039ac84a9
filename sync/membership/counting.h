#pragma once
#include <optional>

#include "sync/membership/fold.h"

/// Private to membership/: what --stop-after counts from. Parts of the fold.
namespace rivulet::sync::membership {

/// A view ends in good order with the first who declares it for all, or with the last member that was asked
/// to go. One that was killed has not left: the others wait for it, and so does what they count.
void note_end(Fold& fold, const Leave& leave);

/// Of `view`, which is about to be closed. Counts carry over views and lives of processes, until
/// the group has ended in good order, goes back behind where it began, or nobody counts.
std::optional<Clocks> counts_from(const ClosedView& view, const Fold& fold);

}  // namespace rivulet::sync::membership
