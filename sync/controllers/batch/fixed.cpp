#include "sync/controllers/batch_rows.h"
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// The conventional baseline: every device brings exactly batch.rows, and all wait until all have them.
// Waiting is a round in mode hold: everyone enters within max_wait as always, so that a slow stream is not
// taken for a dead device, and devices that have their rows keep them and their gradients.
void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  const FactsTable& table = inputs.table;
  const PolicyConfig& config = inputs.config;
  plan.next.rows.assign(table.size(), config.rows);
  plan.why = "fixed rows";
  wait_for_all(table, plan);
}

}  // namespace

extern const ControllerEntry batch_fixed;
const ControllerEntry batch_fixed{
    .role = Role::batch,
    .name = "fixed",
    .help = "the same rows on every device; all wait for the slowest stream",
    .propose = &propose,
    .fixed_rows = true,
    .why_rows = [](const PolicyConfig&, const Facts&, std::uint32_t) -> std::string {
      return "batch.rows, the same on every device";
    }};

}  // namespace rivulet::sync::policy
