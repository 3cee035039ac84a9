#include <algorithm>

#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// The conventional baseline: every device brings exactly batch.rows, and all wait until all have them.
// Waiting is a round in mode hold: everyone enters within max_wait as always, so that a slow stream is not
// taken for a dead device, and whoever has its rows keeps them and its gradient.
void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  const FactsTable& table = inputs.table;
  const PolicyConfig& config = inputs.config;
  plan.next.rows.assign(table.size(), config.rows);
  plan.next.whole = true;
  plan.why = "fixed rows";
  const bool waiting = std::any_of(table.facts.begin(), table.facts.end(),
                                   [](const Facts& f) { return (f.flags & flag_incomplete) != 0; });
  if (waiting && plan.now.mode == Mode::gradients) {
    plan.now.mode = Mode::hold;
    plan.why = "waiting until every device has its rows";
  }
}

}  // namespace

extern const ControllerEntry batch_fixed;
const ControllerEntry batch_fixed{Role::batch, "fixed",
                                  "the same rows on every device; all wait for the slowest stream", &propose};

}  // namespace rivulet::sync::policy
