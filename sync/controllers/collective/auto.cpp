#include "sync/policy/agreement_cost.h"

namespace rivulet::sync::policy {
namespace {

// Gather takes one phase or two and sends (N - 1) payloads, sum and two_sided take more phases and send about
// 2 (N - 1) / N.
void propose(const Inputs& inputs, std::span<double>, RoundPlan& plan) {
  plan.next.way.collective = cheapest_collective(inputs.table.size(), plan.next.way.compressor,
                                                 static_cast<double>(plan.next.way.payload_bytes));
}

}  // namespace

extern const ControllerEntry collective_auto;
const ControllerEntry collective_auto{Role::collective, "auto", "by bytes", &propose};

}  // namespace rivulet::sync::policy
