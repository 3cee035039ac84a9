// The scripted rows, sent with a compressor whose length depends on the data.
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

void propose(const Inputs& in, std::span<double>, RoundPlan& plan) {
  plan.next.rows.assign(in.table.size(), 8);
  plan.next.wait = std::chrono::seconds(3);
  plan.next.compressor = "nonzero";
  plan.next.slot_bytes = 4 + 2 * in.config.contribution_bytes;
  plan.why = "nonzero";
}

}  // namespace
extern const ControllerEntry policy_nonzero_compressor;
const ControllerEntry policy_nonzero_compressor{Role::batch, "nonzero_compressor", "test only", &propose};
}  // namespace rivulet::sync::policy
