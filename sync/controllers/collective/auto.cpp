#include "sync/policy/sync_cost.h"

namespace rivulet::sync::policy {
namespace {

// Gather takes one or two phases and sends (N - 1) payloads. Sum and two_sided take more phases and send
// about 2 (N - 1) / N.
void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  plan.next.way.collective = cheapest_collective(inputs.table.size(), plan.next.way.compressor,
                                                 static_cast<double>(plan.next.way.payload_bytes));
}

}  // namespace

extern const ControllerEntry collective_auto;
const ControllerEntry collective_auto{Role::collective, "auto", "the collective that sends the fewest bytes",
                                      &propose};

}  // namespace rivulet::sync::policy
