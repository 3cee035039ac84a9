#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/state/agreed_state.h"
#include "tests/support/sim_checkers.h"
#include "tests/support/sim_rows.h"

namespace rivulet::testing {

/// Expected contents of a state, counted from the rows along its history.
struct RowBooks {
  std::map<PartitionId, RowCursor> next;
  MissingRows missing;
  SimLine line;  ///< of a learner that trained the same rows in the same steps, alone and without faults
};

/// The expected contents after the step to `after`, whose ledger lists the trained rows. C2: finds rows that
/// are listed as deleted but still exist. Cost: the rows of the step.
RowBooks books_after(const RowBooks& before, const runtime::AgreedState& after, const SimStreams& streams,
                     Finding& finding);

}  // namespace rivulet::testing
