// batch.rows from every device and the usual synchronization: the reference for other collectives,
// compressors and modes.
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  plan.next.rows.assign(in.table.size(), in.config.rows);
  plan.next.wait = std::chrono::seconds(3);
  plan.why = "even rows";
}

}  // namespace
extern const ControllerEntry policy_even_rows;
const ControllerEntry policy_even_rows{Role::batch, "even_rows", "test only", &propose};
}  // namespace rivulet::sync::policy
