#include "sync/controllers/batch_rows.h"
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// The conventional baseline: every device contributes exactly batch.rows, and all wait for the slowest
// stream. While devices wait, rounds run in mode defer: every device enters within max_wait, so that a slow
// stream is not mistaken for a dead device. Devices that are ready keep their rows and gradients.
void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  const FactsTable& table = inputs.table;
  const PolicyConfig& config = inputs.config;
  plan.next.rows.assign(table.size(), config.rows);
  plan.why = "fixed batch size";
  wait_for_all(table, plan);
}

}  // namespace

extern const ControllerEntry batch_fixed;
const ControllerEntry batch_fixed{
    .role = Role::batch,
    .name = "fixed",
    .help = "the same number of rows on every device; all wait for the slowest stream",
    .propose = &propose,
    .fixed_rows = true,
    .why_rows = [](const PolicyConfig&, const Facts&, std::uint32_t) -> std::string {
      return "batch.rows, the same on every device";
    }};

}  // namespace rivulet::sync::policy
