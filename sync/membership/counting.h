#pragma once
#include <optional>

#include "sync/membership/fold.h"

/// Private to membership/: start of the counts for --stop-after. Parts of the fold.
namespace rivulet::sync::membership {

/// Marks the view as ended in an orderly way when a member declares it for all, or when the last member has
/// left on request. A killed member has not left: the others wait for it, and their counts continue.
void note_end(Fold& fold, const Leave& leave);

/// Start of the counts for `view`, which is about to be closed. Counts continue across views and restarts,
/// until the group shuts down in an orderly way, rolls back to before their start, or no device has a limit:
/// no member, and none that is away and has not left.
std::optional<Clocks> counts_from(const ClosedView& view, const Fold& fold);

}  // namespace rivulet::sync::membership
