#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/state/agreed_state.h"
#include "tests/support/sim_checkers.h"
#include "tests/support/sim_rows.h"

namespace rivulet::testing {

/// What a state must hold, counted from the rows themselves along the states that it came out of.
struct RowBooks {
  std::map<PartitionId, RowCursor> next;
  MissingRows missing;
  SimLine line;  ///< of who trained on the same rows in the same steps, alone and without faults
};

/// The books behind the step to `after`, whose state says which rows it trained. C2: rows that it calls
/// deleted, and which can still be read, are found. Cost: the rows of the step.
RowBooks books_after(const RowBooks& before, const runtime::AgreedState& after, const SimStreams& streams,
                     Finding& finding);

}  // namespace rivulet::testing
